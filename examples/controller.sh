#!/bin/sh
# Is told on each line of input what is new, and says on one line of output what it wants now.
want() {
    printf '{"key":"%s","agent":"%s","prompt":[%s]}' "$1" "$2" "$3"
}

all=
while IFS= read -r line; do
    all=$all$line
    case $line in
    *'"end":{"text":'*)
        answer=${line#*'"end":{"text":'}
        printf '{"final":%s}\n' "${answer%%'}},"new":['*}"
        continue
        ;;
    esac

    ideas='' count=0
    for agent in ann bob cid; do
        case $all in
        *"\"idea/$agent\":{\"text\":"*)
            ideas="$ideas,{\"quote\":\"idea/$agent\"}"
            count=$((count + 1))
            ;;
        esac
    done

    if [ "$count" -ge 2 ]; then
        wanted=$(want end ann "{\"text\":\"Make one idea of these two.\"}$ideas")
    else
        task=${all#*'"task":'}
        task=${task%%',"agents":['*}
        wanted=
        for agent in ann bob cid; do
            wanted="$wanted${wanted:+,}$(want "idea/$agent" "$agent" "{\"text\":$task}")"
        done
    fi
    printf '{"want":[%s]}\n' "$wanted"
done
