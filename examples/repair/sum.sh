# Prints the sum of one or two numbers.
sum() {
    echo $(($1 - $2))
}
