. ./sum.sh
[ "$(sum 2 3)" = 5 ] || { echo "2 and 3 are not 5"; exit 1; }
[ "$(sum 2)" = 2 ] || { echo "2 alone is not 2"; exit 1; }
