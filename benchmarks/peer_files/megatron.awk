# Figures of the step lines of a Megatron-LM log: count, first, last, least, greatest and mean of eleven fields. No NaN.
BEGIN { FS = "|" }
/elapsed time per iteration/ {
    if (!match($1, /iteration +[0-9]+\//)) next
    count++
    for (i = 2; i < NF; i++) {
        at = index($i, ":")
        name = substr($i, 1, at - 1)
        text = substr($i, at + 1)
        value = text + 0
        if (!(name in sum)) { first[name] = last[name] = least[name] = greatest[name] = value }
        if (text ~ /[nN]/) continue
        last[name] = value
        sum[name] += value
        if (value < least[name]) least[name] = value
        if (value > greatest[name]) greatest[name] = value
    }
}
END {
    print "records", count
    for (name in sum) printf "%s: %.9g %.9g %.9g %.9g %.9g\n", name, first[name], last[name], least[name], greatest[name], sum[name] / count
}
