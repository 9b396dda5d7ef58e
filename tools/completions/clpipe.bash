# clpipe.bash: completion of clpipe's commands, options and their values in bash.

_clpipe_options()
{
    local machine="--device --threads --memory --device-memory --profile"
    local general="--progress --json --quiet --verbose --help"
    local ingest="--feature --normalize --alpha --icc --max-pixels --max-scans --blur --decode-scale
        --isolate --max-decode-seconds --follow-symlinks --hidden --include --exclude
        --limit --dry-run --strict --fresh
        --add --retry-failed --max-time --slot-size --slots --histogram-variant
        --jpeg-pixels"
    local clustering="--k --name --init --seed --n-init --max-iter --tol --metric --mini-batch
        --checkpoint --force --plot"
    case $1 in
    run) echo "--output $ingest $clustering --cluster-feature" ;;
    ingest) echo "--output $ingest" ;;
    cluster) echo "--output --feature --weights --max-time $clustering" ;;
    assign) echo "--output --name --feature --force" ;;
    info) echo "--failures --digest" ;;
    repair) echo "--output --dry-run" ;;
    export) echo "--what --format --feature --name --output --to --link" ;;
    devices) echo "--ndrange --local --image --out" ;;
    bench) echo "--feature --variant --fill --shape --bytes --rounds" ;;
    tune) echo "--feature --bytes --rounds --show --forget" ;;
    esac
    echo "$machine $general"
}

_clpipe()
{
    local commands="run ingest cluster assign info export verify repair devices formats self-test
        bench tune"
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local command=${COMP_WORDS[1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "$commands --version --help" -- "$current"))
        return
    fi
    # bash takes --option=value apart at the equals sign.
    if [[ $current == "=" ]]; then
        current=
    elif [[ $previous == "=" ]]; then
        previous=${COMP_WORDS[COMP_CWORD-2]}
    fi
    case $previous in
    --progress) COMPREPLY=($(compgen -W "auto always never" -- "$current")) ;;
    --normalize) COMPREPLY=($(compgen -W "l1 none hellinger" -- "$current")) ;;
    --alpha) COMPREPLY=($(compgen -W "white black drop" -- "$current")) ;;
    --icc) COMPREPLY=($(compgen -W "ignore apply" -- "$current")) ;;
    --blur) COMPREPLY=($(compgen -W "off 3" -- "$current")) ;;
    --jpeg-pixels) COMPREPLY=($(compgen -W "auto host device" -- "$current")) ;;
    --decode-scale) COMPREPLY=($(compgen -W "1 2 4 8" -- "$current")) ;;
    --metric) COMPREPLY=($(compgen -W "euclidean cosine hellinger" -- "$current")) ;;
    --init)
        COMPREPLY=($(compgen -W "kmeans++ kmeans-parallel random" -- "$current")
            $(compgen -f -X '!*.npy' -- "$current")) ;;
    --what) COMPREPLY=($(compgen -W "features labels failures images tree" -- "$current")) ;;
    --format) COMPREPLY=($(compgen -W "csv tsv jsonl npy" -- "$current")) ;;
    --variant | --histogram-variant)
        COMPREPLY=($(compgen -W "auto private local replicated packed runs subgroup partial staged global" -- "$current")) ;;
    --fill)
        COMPREPLY=($(compgen -W "constant two natural random sorted all" -- "$current")) ;;
    --shape) COMPREPLY=($(compgen -W "large 512x384 224x224 all" -- "$current")) ;;
    --link) COMPREPLY=($(compgen -W "symlink hard copy" -- "$current")) ;;
    --device) COMPREPLY=($(compgen -W "cpu gpu all" -- "$current")) ;;
    --feature)
        case $command in
        run | ingest | bench)
            COMPREPLY=($(compgen -W "rgb:bins=256 rgb:bins=8x8x8 gray:bins=256 hsv:bins=8x4x4" \
                -- "$current")) ;;
        esac ;;
    --to) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$current")) ;;
    --plot) COMPREPLY=($(compgen -f -X '!*.svg' -- "$current")) ;;
    -o | --output | --json | --profile | --image | --out | --weights)
        compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$current")) ;;
    --threads | --memory | --device-memory | --max-pixels | --max-scans | --max-decode-seconds | --limit | --max-time | \
        --slot-size | --slots | -k | --k | --name | --seed | --n-init | --max-iter | --tol | \
        --mini-batch | --checkpoint | --bytes | --rounds | --ndrange | --local | --include | --exclude | --cluster-feature) ;;
    *)
        if [[ $current == -* ]]; then
            COMPREPLY=($(compgen -W "$(_clpipe_options "$command")" -- "$current"))
        else
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- "$current"))
        fi ;;
    esac
}

complete -F _clpipe clpipe
