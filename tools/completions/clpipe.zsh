#compdef clpipe
# clpipe.zsh: completion of clpipe's commands, options and their values in zsh (as _clpipe).

_clpipe() {
    local -a commands machine general ingest result clustering run_only cluster_only assign info
    local -a export repair devices bench tune options
    commands=(
        'run:features and clusters of images'
        'ingest:features of images into a file'
        'cluster:group rows by k-means'
        'assign:label new rows by other clusters'
        'info:what is inside a file, what failed and why'
        'export:tables, or a folder per cluster'
        'verify:check everything that a file promises'
        'repair:save what is right of a damaged file'
        'devices:OpenCL devices'
        'formats:image formats'
        'self-test:compare a device with plain C'
        'bench:how fast a device counts'
        'tune:measure which kernels are the fastest'
    )
    machine=(
        '--device=[device to compute on]:device:(cpu gpu all)'
        '--threads=[decode and host threads]:number:'
        '--memory=[bound on host buffers]:size:'
        '--device-memory=[bound on device buffers]:size:'
        '--profile=[record what ran when]:file:_files'
    )
    general=(
        '--progress=[progress on standard error]:when:(auto always never)'
        '--json=[write the result as JSON]:file:_files'
        '(-q --quiet)'{-q,--quiet}'[print errors only]'
        '(-v --verbose)'{-v,--verbose}'[print more]'
        '(-h --help)'{-h,--help}'[explain the command]'
    )
    result=(
        '(-o --output)'{-o+,--output=}'[the file to write]:file:_files'
    )
    ingest=(
        '*--feature=[what to compute]:spec:(rgb:bins=256 rgb:bins=8x8x8 gray:bins=256 hsv:bins=8x4x4)'
        '--normalize=[shares, counts or roots]:how:(l1 none hellinger)'
        '--alpha=[what transparency is laid over]:how:(white black drop)'
        '--icc=[what is done with ICC profiles]:how:(ignore apply)'
        '--max-pixels=[larger pictures are failures]:number:'
        '--max-scans=[JPEG with more scans are failures]:number:'
        '--blur=[features of the blurred pictures]:size:(off 3)'
        '--decode-scale=[decode JPEG at a fraction]:scale:(1 2 4 8)'
        '--isolate[decode in processes of their own]'
        '--max-decode-seconds=[files that take longer are failures]:seconds:'
        '--follow-symlinks[go into linked directories]'
        '--hidden[take names that begin with a dot]'
        '*--include=[only files that match]:glob:'
        '*--exclude=[no files that match]:glob:'
        '--limit=[only the first N files]:number:'
        '--dry-run[read headers only, write nothing]'
        '--strict[stop at the first failure]'
        '--fresh[start over]'
        '--add[add the features to those of the file]'
        '--retry-failed[try files again that failed]'
        '--max-time=[stop cleanly after this time]:seconds:'
        '--slot-size=[staging buffer]:size:'
        '--slots=[staging buffers of each device]:number:'
        '--histogram-variant=[the kernel that counts]:variant:(auto private local replicated packed runs subgroup partial staged global)'
        '--jpeg-pixels=[where JPEG coefficients become pixels]:where:(auto host device)'
    )
    clustering=(
        '(-k --k)'{-k+,--k=}'[number of clusters, or A:B to choose]:number:'
        '--plot=[draw the measures of each k]:file:_files -g "*.svg"'
        '--name=[store as /clusters/NAME]:name:'
        '--init=[first centroids]:how:(kmeans++ kmeans-parallel random)'
        '--seed=[of the random choices]:number:'
        '--n-init=[runs, the best is kept]:number:'
        '--max-iter=[iterations at most]:number:'
        '--tol=[stop when centroids move less]:share:'
        '--metric=[distance]:metric:(euclidean cosine hellinger)'
        '--mini-batch=[rows for each iteration]:number:'
        '--checkpoint=-[how often the state is kept]::seconds:'
        '--force[replace an earlier result]'
    )
    run_only=('--cluster-feature=[feature to cluster by]:name:')
    cluster_only=(
        '--feature=[feature of a clpipe file]:name:'
        '--weights=[how often each row counts]:file:_files'
        '--max-time=[stop cleanly after this time]:seconds:'
    )
    assign=(
        '--name=[which clusters]:name:'
        '--feature=[which feature of INPUT]:name:'
        '(-o --output)'{-o+,--output=}'[a file of its own]:file:_files'
        '--force[replace an earlier result]'
    )
    info=(
        '--failures[list every file that failed]'
        '--digest[print the identity]'
    )
    export=(
        '--what=[what to write]:what:(features labels failures images tree)'
        '--format=[format of a table]:format:(csv tsv jsonl npy)'
        '--feature=[which feature]:name:'
        '--name=[which clusters]:name:'
        '(-o --output)'{-o+,--output=}'[the file to write]:file:_files'
        '--to=[directory of the tree]:directory:_files -/'
        '--link=[what entries are]:kind:(symlink hard copy)'
    )
    devices=(
        '--ndrange=[launch a range of that size in four cases]:WxH:'
        '--local=[size of the work-group]:AxB:'
        '--image=[blur that picture in these cases]:file:_files'
        '--out=[write PREFIX_0.bmp to PREFIX_3.bmp]:prefix:_files'
    )
    bench=(
        '*--feature=[what to count]:feature:'
        '--variant=[one kernel only]:variant:(auto private local replicated packed runs subgroup partial staged global)'
        '--fill=[the pixels]:fill:(constant two natural random sorted all)'
        '--shape=[the pictures]:shape:(large 512x384 224x224 all)'
        '--bytes=[pixels of one launch]:size:'
        '--rounds=[launches]:number:'
    )

    tune=(
        '*--feature=[what to count]:feature:'
        '--bytes=[pixels of one launch]:size:'
        '--rounds=[launches]:number:'
        '--show[print what an ingest takes]'
        '--forget[drop what was kept]'
    )
    repair=(
        '(-o --output)'{-o,--output=}'[the file to write]:file:_files'
        '--dry-run[say what can be saved, write nothing]'
    )

    if (( CURRENT == 2 )); then
        _describe command commands
        _arguments '--version[what this program was built with]' '(-h --help)'{-h,--help}'[help]'
        return
    fi
    case $words[2] in
        run) options=($result $ingest $clustering $run_only) ;;
        ingest) options=($result $ingest) ;;
        cluster) options=($result $cluster_only $clustering) ;;
        assign) options=($assign) ;;
        info) options=($info) ;;
        export) options=($export) ;;
        devices) options=($devices) ;;
        bench) options=($bench) ;;
        tune) options=($tune) ;;
        repair) options=($repair) ;;
        verify|formats|self-test) options=() ;;
    esac
    shift words
    (( CURRENT-- ))
    _arguments -s -S $options $machine $general '*:file:_files'
}

_clpipe "$@"
