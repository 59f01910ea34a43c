# Figures of the step lines of a Megatron-LM log: count, first, last, least, greatest and mean of twelve fields.
use strict;
use warnings;

my $number = qr/([-+.\dA-Za-z]+)/;
my $step = qr/iteration +(\d+)\/ *(\d+) \| consumed samples: +(\d+) \| elapsed time per iteration \(ms\): $number \| throughput per GPU \(TFLOP\/s\/GPU\): $number \| learning rate: $number \| global batch size: +(\d+) \| lm loss: $number \| loss scale: $number \| grad norm: $number \| number of skipped iterations: +(\d+) \| number of nan iterations: +(\d+) \|/;
my $count = 0;
my (@first, @last, @sum, @least, @greatest);
open my $log, '<', $ARGV[0] or die "$ARGV[0]: $!";
while (<$log>) {
    my @values = /$step/ or next;
    @first = @values unless $count++;
    @last = @values;
    for my $i (0 .. 11) {
        my $value = $values[$i];
        next if $value =~ /n/i;
        $sum[$i] += $value;
        $least[$i] = $value if !defined $least[$i] || $value < $least[$i];
        $greatest[$i] = $value if !defined $greatest[$i] || $value > $greatest[$i];
    }
}
print "records $count\n";
print join(' ', $first[$_], $last[$_], $least[$_], $greatest[$_], $sum[$_] / $count), "\n" for 0 .. 11;
