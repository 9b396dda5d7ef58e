# clpipe.fish: completion of clpipe's commands, options and their values in fish.

function __clpipe_needs_command
    test (count (commandline -opc)) -eq 1
end

function __clpipe_using
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end

complete -c clpipe -n __clpipe_needs_command -f
complete -c clpipe -n __clpipe_needs_command -l version -d 'what this program was built with'
complete -c clpipe -s h -l help -d 'explain the command'

complete -c clpipe -n __clpipe_needs_command -a run -d 'features and clusters of images'
complete -c clpipe -n __clpipe_needs_command -a ingest -d 'features of images into a file'
complete -c clpipe -n __clpipe_needs_command -a cluster -d 'group rows by k-means'
complete -c clpipe -n __clpipe_needs_command -a assign -d 'label new rows by other clusters'
complete -c clpipe -n __clpipe_needs_command -a info -d 'what is inside a file, what failed'
complete -c clpipe -n __clpipe_needs_command -a export -d 'tables, or a folder per cluster'
complete -c clpipe -n __clpipe_needs_command -a verify -d 'check what a file promises'
complete -c clpipe -n __clpipe_needs_command -a repair -d 'save what is right of a damaged file'
complete -c clpipe -n __clpipe_needs_command -a devices -d 'OpenCL devices'
complete -c clpipe -n __clpipe_needs_command -a formats -d 'image formats'
complete -c clpipe -n __clpipe_needs_command -a self-test -d 'compare a device with plain C'
complete -c clpipe -n __clpipe_needs_command -a bench -d 'how fast a device counts'
complete -c clpipe -n __clpipe_needs_command -a tune -d 'measure which kernels are the fastest'

# Every command.
set -l any 'not __clpipe_needs_command'
complete -c clpipe -n $any -l device -x -a 'cpu gpu all' -d 'device to compute on'
complete -c clpipe -n $any -l threads -x -d 'decode and host threads'
complete -c clpipe -n $any -l memory -x -d 'bound on host buffers'
complete -c clpipe -n $any -l device-memory -x -d 'bound on device buffers'
complete -c clpipe -n $any -l profile -r -d 'record what ran when'
complete -c clpipe -n $any -l progress -x -a 'auto always never' -d 'progress on standard error'
complete -c clpipe -n $any -l json -r -d 'write the result as JSON'
complete -c clpipe -n $any -s q -l quiet -d 'print errors only'
complete -c clpipe -n $any -s v -l verbose -d 'print more'

# ingest, run
set -l ingest '__clpipe_using ingest run'
complete -c clpipe -n $ingest -s o -l output -r -d 'the file to write or update'
complete -c clpipe -n $ingest -l feature -x -a 'rgb:bins=256 rgb:bins=8x8x8 gray:bins=256 hsv:bins=8x4x4' -d 'what to compute'
complete -c clpipe -n $ingest -l normalize -x -a 'l1 none hellinger' -d 'shares, counts or roots'
complete -c clpipe -n $ingest -l alpha -x -a 'white black drop' -d 'what transparency is laid over'
complete -c clpipe -n $ingest -l icc -x -a 'ignore apply' -d 'what is done with ICC profiles'
complete -c clpipe -n $ingest -l max-pixels -x -d 'larger pictures are failures'
complete -c clpipe -n $ingest -l max-scans -x -d 'JPEG with more scans are failures'
complete -c clpipe -n $ingest -l blur -x -a 'off 3' -d 'features of the blurred pictures'
complete -c clpipe -n $ingest -l decode-scale -x -a '1 2 4 8' -d 'decode JPEG at a fraction'
complete -c clpipe -n $ingest -l isolate -d 'decode in processes of their own'
complete -c clpipe -n $ingest -l max-decode-seconds -x -d 'files that take longer are failures'
complete -c clpipe -n $ingest -l follow-symlinks -d 'go into linked directories'
complete -c clpipe -n $ingest -l hidden -d 'take names that begin with a dot'
complete -c clpipe -n $ingest -l include -x -d 'only files that match'
complete -c clpipe -n $ingest -l exclude -x -d 'no files that match'
complete -c clpipe -n $ingest -l limit -x -d 'only the first N files'
complete -c clpipe -n $ingest -l dry-run -d 'read headers only, write nothing'
complete -c clpipe -n $ingest -l strict -d 'stop at the first failure'
complete -c clpipe -n $ingest -l fresh -d 'start over'
complete -c clpipe -n $ingest -l add -d 'add the features to those of the file'
complete -c clpipe -n $ingest -l retry-failed -d 'try files again that failed'
complete -c clpipe -n $ingest -l max-time -x -d 'stop cleanly after this time'
complete -c clpipe -n $ingest -l slot-size -x -d 'staging buffer'
complete -c clpipe -n $ingest -l slots -x -d 'staging buffers of each device'
complete -c clpipe -n $ingest -l histogram-variant -x -a 'auto private local replicated packed runs subgroup partial staged global' -d 'the kernel that counts'
complete -c clpipe -n $ingest -l jpeg-pixels -x -a 'auto host device' -d 'where JPEG coefficients become pixels'

# cluster, run
set -l clustering '__clpipe_using cluster run'
complete -c clpipe -n $clustering -s k -l k -x -d 'number of clusters, or A:B to choose'
complete -c clpipe -n $clustering -l plot -r -d 'draw the measures of each k'
complete -c clpipe -n $clustering -l name -x -d 'store as /clusters/NAME'
complete -c clpipe -n $clustering -l init -r -a 'kmeans++ kmeans-parallel random' -d 'first centroids'
complete -c clpipe -n $clustering -l seed -x -d 'of the random choices'
complete -c clpipe -n $clustering -l n-init -x -d 'runs, the best is kept'
complete -c clpipe -n $clustering -l max-iter -x -d 'iterations at most'
complete -c clpipe -n $clustering -l tol -x -d 'stop when centroids move less'
complete -c clpipe -n $clustering -l metric -x -a 'euclidean cosine hellinger' -d 'distance'
complete -c clpipe -n $clustering -l mini-batch -x -d 'rows for each iteration'
complete -c clpipe -n $clustering -l checkpoint -x -d 'how often the state is kept'
complete -c clpipe -n $clustering -l force -d 'replace an earlier result'
complete -c clpipe -n '__clpipe_using run' -l cluster-feature -x -d 'feature to cluster by'
complete -c clpipe -n '__clpipe_using cluster' -l feature -x -d 'feature of a clpipe file'
complete -c clpipe -n '__clpipe_using cluster' -l weights -r -d 'how often each row counts'
complete -c clpipe -n '__clpipe_using cluster' -l max-time -x -d 'stop cleanly after this time'
complete -c clpipe -n '__clpipe_using cluster' -s o -l output -r -d 'a file of its own'

complete -c clpipe -n '__clpipe_using assign' -l name -x -d 'which clusters'
complete -c clpipe -n '__clpipe_using assign' -l feature -x -d 'which feature of INPUT'
complete -c clpipe -n '__clpipe_using assign' -s o -l output -r -d 'a file of its own'
complete -c clpipe -n '__clpipe_using assign' -l force -d 'replace an earlier result'

complete -c clpipe -n '__clpipe_using info' -l failures -d 'list every file that failed'
complete -c clpipe -n '__clpipe_using info' -l digest -d 'print the identity'

complete -c clpipe -n '__clpipe_using export' -l what -x -a 'features labels failures images tree' -d 'what to write'
complete -c clpipe -n '__clpipe_using export' -l format -x -a 'csv tsv jsonl npy' -d 'format of a table'
complete -c clpipe -n '__clpipe_using export' -l feature -x -d 'which feature'
complete -c clpipe -n '__clpipe_using export' -l name -x -d 'which clusters'
complete -c clpipe -n '__clpipe_using export' -s o -l output -r -d 'the file to write'
complete -c clpipe -n '__clpipe_using export' -l to -x -a '(__fish_complete_directories)' -d 'directory of the tree'
complete -c clpipe -n '__clpipe_using export' -l link -x -a 'symlink hard copy' -d 'what entries are'

complete -c clpipe -n '__clpipe_using devices' -l ndrange -x -d 'launch a range of that size in four cases'
complete -c clpipe -n '__clpipe_using devices' -l local -x -d 'size of the work-group'
complete -c clpipe -n '__clpipe_using devices' -l image -r -d 'blur that picture in these cases'
complete -c clpipe -n '__clpipe_using devices' -l out -r -d 'write PREFIX_0.bmp to PREFIX_3.bmp'

complete -c clpipe -n '__clpipe_using bench' -l feature -x -a 'rgb:bins=256 rgb:bins=8x8x8 gray:bins=256 hsv:bins=8x4x4' -d 'what to count'
complete -c clpipe -n '__clpipe_using bench' -l variant -x -a 'auto private local replicated packed runs subgroup partial staged global' -d 'one kernel only'
complete -c clpipe -n '__clpipe_using bench' -l fill -x -a 'constant two natural random sorted all' -d 'the pixels'
complete -c clpipe -n '__clpipe_using bench' -l shape -x -a 'large 512x384 224x224 all' -d 'the pictures'
complete -c clpipe -n '__clpipe_using bench' -l bytes -x -d 'pixels of one launch'
complete -c clpipe -n '__clpipe_using bench' -l rounds -x -d 'launches'

complete -c clpipe -n '__clpipe_using tune' -l feature -x -a 'rgb:bins=256 rgb:bins=8x8x8 gray:bins=256 hsv:bins=8x4x4' -d 'what to count'
complete -c clpipe -n '__clpipe_using tune' -l bytes -x -d 'pixels of one launch'
complete -c clpipe -n '__clpipe_using tune' -l rounds -x -d 'launches'
complete -c clpipe -n '__clpipe_using tune' -l show -d 'print what an ingest takes'
complete -c clpipe -n '__clpipe_using tune' -l forget -d 'drop what was kept'

# repair
complete -c clpipe -n '__clpipe_using repair' -s o -l output -r -d 'the file to write'
complete -c clpipe -n '__clpipe_using repair' -l dry-run -d 'say what can be saved, write nothing'
