# SPDX-License-Identifier: Apache-2.0
# Completion of `duet` in bash. What there is to choose from is asked of the command itself; where
# nothing of that fits, there are the names of files.

_duet_list() {
    "${COMP_WORDS[0]}" list "$1" 2>/dev/null | sed -n 's/^\([^ ]\{1,\}\) .*/\1/p'
}

# The value that help ($2) gives the option $1.
_duet_value() {
    sed -n "s/^  \(-., \)\{0,1\}$1\(, --[^= ]*\)\{0,1\}=\([^ ]*\) .*/\3/p" <<<"$2"
}

# What may stand where help says $1, an option's value or a subcommand's arguments: words in small
# letters are meant as they are, "s|d" or "free|P".
_duet_words() {
    case $1 in
        *WORKLOAD*) _duet_list workloads ;;
        *PLATFORM*) _duet_list platforms ;;
    esac
    tr -s '[]|, ' '\n' <<<"$1" | grep -x '[a-z]*'
}

_duet() {
    local duet=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=$3 help words='' list=''

    # bash takes --option=value for three words
    if [[ $word == = ]]; then
        word=
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ((COMP_CWORD == 1)); then
        words="--help --version $("$duet" --help | sed -n 's/^  \([a-z]\{1,\}\)  .*/\1/p')"
    elif help=$("$duet" "${COMP_WORDS[1]}" --help 2>/dev/null); then
        if [[ $before == -* && -n $(_duet_value "$before" "$help") ]]; then
            case $before in
                --policy) words=$(_duet_list policies) list=${word%"${word##*,}"} ;;
                --model) words=$(_duet_list models) ;;
                --platform | -p | --emulate)
                    words=$(_duet_list platforms) list=${word%"${word##*,}"}
                    ;;
            esac
            words+=" $(_duet_words "$(_duet_value "$before" "$help")")"
        elif [[ $word == -* ]]; then
            words=$(sed -n 's/^  \(-., \)\{0,1\}\(--[^= ]*\).*/\2/p' <<<"$help")
        else
            words=$(_duet_words "$(sed -n '2s/.*…\]//p' <<<"$help")")
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -P "$list" -W "$words" -- "${word#"$list"}")
}

complete -o bashdefault -o default -F _duet duet
