"""Written by `make goldens` from the schema 'receipt/1.4': change that instead."""

from collections.abc import Mapping
from typing import Any, Literal

from receipt_cli.api.view import View

class ReceiptFields(View):
    @property
    def schema_version(self) -> str:
        """Kind and version of the document. Major: meaning. Minor: optional fields added, nothing else."""
    @property
    def run(self) -> Run:
        """Which run this is, as captured."""
    @property
    def header(self) -> Header:
        """What ran where, with which code."""
    @property
    def summary(self) -> Summary | None:
        """Summary of the primary phase: the one with most step records, the first on a tie. Null when no step was found
        and the log holds lines that look like steps or metrics nobody can read: then zero steps would be a guess."""
    @property
    def phases(self) -> tuple[PhasesItem, ...]:
        """Every phase in log order; one log often holds several (pre-training, fine-tuning, evaluation)."""
    @property
    def checks(self) -> Checks:
        """What the log proves: true, false, or null where it cannot prove either. The first four decide health: healthy
        is has_steps true and none of the four false; proven is all four true. No throughput threshold lives here."""
    @property
    def failure(self) -> Failure | None:
        """Why the run failed, or null when nothing says that it did."""
    @property
    def goodput(self) -> Goodput | None:
        """Where the wall time went, or null without wall-clock evidence."""
    @property
    def cost(self) -> Cost | None:
        """What the run cost, in money and in energy. Absent where neither a price nor the power of a device is
        known."""
    @property
    def attachments(self) -> tuple[AttachmentsItem, ...]:
        """Heavy artefacts out of band (profiles, traces, checkpoints); never inlined."""
    @property
    def evidence(self) -> tuple[EvidenceItem, ...] | None:
        """What schedulers and platforms record of the job (receipt parse --evidence, and receipt run inside a Slurm
        job). Absent where nobody gave any. The rule evidence_agrees names where it contradicts the log."""
    @property
    def captured_sha256(self) -> str | None:
        """SHA-256 of run, header, attachments and, where there are any, evidence and the stated facts
        (derivation.options.facts, under the key facts), as one line of JSON with keys as they stand, shortest floats
        and one newline: it says whether they were changed since they were written. Absent in a receipt of an older
        version. It protects against accident, not against forgery."""
    @property
    def derivation(self) -> Derivation:
        """What the derived part was computed from and how; enough to compute it again."""

class Run(View):
    @property
    def name(self) -> str | None:
        """The run's own name, as whoever started it calls it."""
    @property
    def lane(self) -> str | None:
        """A line of comparable runs: hardware and recipe together. Histories and gates are kept by lane."""
    @property
    def preset(self) -> str | None:
        """Name of the recipe (configuration) that was trained."""
    @property
    def started_at(self) -> str | None:
        """When the job started, UTC, RFC 3339 with Z."""
    @property
    def finished_at(self) -> str | None:
        """When the job ended, UTC, RFC 3339 with Z."""
    @property
    def exit_code(self) -> int | None:
        """Exit code of the job as captured; negative for a signal."""
    @property
    def wall_time_s(self) -> float | None:
        """Wall time of the job in seconds, as its wrapper measured it (receipt run); null when nobody did."""
    @property
    def peak_rss_bytes(self) -> int | None:
        """Largest sum of the resident memory of the job's processes that its wrapper saw (receipt run), or, where that
        is more, the most that one process held as the kernel has it; in bytes; null when nobody looked."""
    @property
    def log_complete(self) -> bool | None:
        """Whether the job's wrapper wrote the whole log (receipt run); false where output is missing at its end, null
        or absent when no wrapper did."""
    @property
    def log_loss(self) -> RunLogLoss | None:
        """Output that is missing at the end of the log, which could not be written whole; null or absent for a whole
        log, and when no wrapper wrote it."""
    @property
    def recovered(self) -> bool | None:
        """True where the job's wrapper (receipt run) was killed and this receipt was made later: what only the wrapper
        could see, such as the exit code, is null. Absent otherwise."""
    @property
    def sampled(self) -> RunSampled | None:
        """What samples of the job's GPUs and of the machine's memory show (receipt run --sample); absent or null when
        nothing was sampled."""

class RunLogLoss(View):
    @property
    def reason(self) -> str:
        """Why the log could not be written, in words of the system."""
    @property
    def first_byte(self) -> int | None:
        """Position in the file of the first lost byte, from 0; null when unknown."""
    @property
    def byte_count(self) -> int | None:
        """Number of lost bytes; null when unknown."""

class RunSampled(View):
    @property
    def sample_count(self) -> int:
        """Number of samples."""
    @property
    def duration_s(self) -> float:
        """Seconds from the first to the last of them."""
    @property
    def gpu_count(self) -> int:
        """Number of GPUs that were sampled."""
    @property
    def gpu_busy_ratio(self) -> float | None:
        """Mean share of the time in which a kernel ran on a GPU; null when one does not say."""
    @property
    def gpu_idle_s(self) -> float | None:
        """Seconds in which all GPUs were idle: below 5 % in the samples that end them."""
    @property
    def gpu_peak_bytes(self) -> int | None:
        """Most memory in use on one GPU, by all programs."""
    @property
    def energy_j(self) -> float | None:
        """Energy of all these GPUs in joules, from their power in the samples; null when one does not say."""
    @property
    def host_peak_bytes(self) -> int | None:
        """Most memory in use on the machine, by all programs."""

class Header(View):
    @property
    def git(self) -> HeaderGit:
        """The source tree that was run."""
    @property
    def software(self) -> HeaderSoftware:
        """Versions of what ran."""
    @property
    def hardware(self) -> HeaderHardware:
        """The machines that trained."""
    @property
    def parallelism(self) -> HeaderParallelism | None:
        """Degrees of parallelism; null when nothing is known about it."""
    @property
    def model(self) -> HeaderModel:
        """The model that was trained."""
    @property
    def data(self) -> HeaderData | None:
        """What the model was trained on, as stated; null when unknown."""
    @property
    def seeds(self) -> Mapping[str, int] | None:
        """Random seeds by name; null when unknown."""
    @property
    def flags(self) -> Mapping[str, str | float | bool | None] | None:
        """Settings that affect numerics or performance, and no others: name to value; null when unknown."""
    @property
    def execution(self) -> Mapping[str, Any] | None:
        """How the program was executed: compile posture, and for each backend what was requested against what was
        observed, such as {"attention_backend": {"requested": "fa3", "observed": "sdpa"}}; null when unknown."""
    @property
    def cost(self) -> HeaderCost | None:
        """What the job costs; null when no rate is known."""
    @property
    def cwd(self) -> str | None:
        """Working directory of the job."""
    @property
    def collected_at(self) -> str | None:
        """When these facts were collected, UTC, RFC 3339 with Z."""
    @property
    def sources(self) -> Mapping[str, str]:
        """Where each value comes from: a JSON pointer relative to the header (such as /git/commit; a pointer to an
        object covers everything in it) to env:NAME (environment override), blob (one JSON override), file (a header
        file written at job start), log:N (line N of the log), import:POINTER (that value of an imported document;
        import:NAME#POINTER of its file of that name), host or git (read from the machine on request)."""

class HeaderGit(View):
    @property
    def commit(self) -> str | None:
        """Commit id, as long as it was recorded."""
    @property
    def branch(self) -> str | None:
        """Branch name; null on a detached head."""
    @property
    def dirty(self) -> bool | None:
        """Whether the tree held uncommitted changes to tracked files."""
    @property
    def message(self) -> str | None:
        """First line of the commit message."""

class HeaderSoftware(View):
    @property
    def python(self) -> str | None:
        """Python version."""
    @property
    def platform(self) -> str | None:
        """Operating system and architecture."""
    @property
    def torch(self) -> str | None:
        """PyTorch version."""
    @property
    def cuda(self) -> str | None:
        """CUDA (or ROCm) version that the framework uses."""
    @property
    def trainer(self) -> str | None:
        """The training program, as grammars spell it, with its version after a blank where known."""
    @property
    def packages(self) -> Mapping[str, str] | None:
        """Other installed packages that matter to the run: distribution name to version."""

class HeaderHardware(View):
    @property
    def accelerators(self) -> tuple[HeaderHardwareAcceleratorsItem, ...] | None:
        """Accelerators of the whole job, one entry per model; null when unknown."""
    @property
    def cpu_count(self) -> int | None:
        """Logical CPUs of the reporting host."""
    @property
    def ram_bytes(self) -> int | None:
        """Main memory of the reporting host, in bytes."""

class HeaderHardwareAcceleratorsItem(View):
    @property
    def name(self) -> str | None:
        """Product name as the driver reports it."""
    @property
    def count(self) -> int | None:
        """How many of them took part."""
    @property
    def memory_bytes(self) -> int | None:
        """Memory of one of them, in bytes."""

class HeaderParallelism(View):
    @property
    def world_size(self) -> int | None:
        """Processes (ranks) of the job."""
    @property
    def data(self) -> int | None:
        """Data-parallel degree."""
    @property
    def tensor(self) -> int | None:
        """Tensor-parallel degree."""
    @property
    def pipeline(self) -> int | None:
        """Pipeline-parallel degree."""
    @property
    def context(self) -> int | None:
        """Context-parallel (sequence-parallel) degree."""
    @property
    def expert(self) -> int | None:
        """Expert-parallel degree."""

class HeaderModel(View):
    @property
    def architecture(self) -> str | None:
        """Name of the architecture."""
    @property
    def parameter_count(self) -> int | None:
        """Number of parameters, all ranks together."""
    @property
    def parameter_digest(self) -> str | None:
        """Digest of the initial parameters, as the job states it: equal ones start alike."""

class HeaderData(View):
    @property
    def name(self) -> str | None:
        """Name of the data set or mixture."""
    @property
    def size_samples(self) -> int | None:
        """Number of its samples."""
    @property
    def tokenizer(self) -> str | None:
        """Name of the tokenizer."""
    @property
    def packing_policy(self) -> str | None:
        """How documents are packed into rows."""
    @property
    def digest(self) -> str | None:
        """Digest of the data, as stated."""

class HeaderCost(View):
    @property
    def hourly_rate(self) -> float:
        """Price of the whole job per hour, in the currency."""
    @property
    def currency(self) -> str | None:
        """Currency of the rate, such as USD."""
    @property
    def source(self) -> str | None:
        """Where the rate comes from: a price list and its date, an invoice."""

class Summary(View):
    @property
    def phase(self) -> str | None:
        """Name of the phase; null when the log does not name it."""
    @property
    def steps(self) -> SummarySteps:
        """The training-step records, each counted once."""
    @property
    def steady_state(self) -> SummarySteadyState:
        """Which step records the steady window holds. The three counts add up to steps.record_count."""
    @property
    def training_time_s(self) -> float | None:
        """Training time in seconds as the trainer reports it."""
    @property
    def parameter_count(self) -> int | None:
        """Number of parameters as the log states it."""
    @property
    def metrics(self) -> Mapping[str, Stat]:
        """Canonical metrics by name: as printed, converted to base units."""
    @property
    def other_metrics(self) -> Mapping[str, OtherStat]:
        """Printed numbers that the registry does not know, by the name printed."""
    @property
    def derived(self) -> Mapping[str, DerivedStat]:
        """Canonical metrics that were recomputed from the log's own figures, by name; beside the reported ones, never
        instead of them."""
    @property
    def consistency(self) -> tuple[SummaryConsistencyItem, ...]:
        """Reported against derived, one entry for each metric that is both."""
    @property
    def flags(self) -> tuple[SummaryFlagsItem, ...] | None:
        """What is odd about the figures, by kind and metric: never a threshold on speed. Empty where nothing is."""
    @property
    def spikes(self) -> SummarySpikes | None:
        """Jumps of loss and gradient norm; null where neither was printed often enough."""
    @property
    def bottleneck(self) -> SummaryBottleneck | None:
        """What holds the run up, from the medians of the steady state; null where the log has no such figures."""
    @property
    def memory(self) -> SummaryMemory | None:
        """How memory developed, where allocated and reserved memory or the allocator's own counts were printed; null
        where not."""
    @property
    def time(self) -> SummaryTime | None:
        """First and last time stamp of the run's lines in the log: when it ran, by its own clock. Null where no line
        has one, or the clock goes back."""
    @property
    def step_times(self) -> SummaryStepTimes | None:
        """Spread of the seconds of a step over the steady records; quantiles are linear between neighbouring ranks.
        Null where fewer than ten are known, or the printed ones are means since the start."""
    @property
    def realised(self) -> SummaryRealised | None:
        """What was done from the first step record to the last, waits, evaluations, checkpoints and stalls included.
        Null where the records have no stamps that show it."""
    @property
    def identities(self) -> tuple[SummaryIdentitiesItem, ...] | None:
        """Two ways to one number, each by the log's own figures, of which both are known."""
    @property
    def checkpoints(self) -> SummaryCheckpoints | None:
        """The saved steps; null where the log reports none. Lines about one step without a step record between them are
        of one checkpoint."""
    @property
    def time_to_train_s(self) -> float | None:
        """Seconds from the start of the run to its end, as an MLPerf log states them: run_stop less run_start of the
        last run that it holds. Null without both."""
    @property
    def position(self) -> SummaryPosition | None:
        """How far the run came through its data; null where the log does not say."""
    @property
    def slow_steps(self) -> SummarySlowSteps | None:
        """Step records of the steady state whose printed time is 1.5 times the median of the hundred before them, and
        lies six times as far from it as these do (rule slow/1). Absent without any."""
    @property
    def ranks(self) -> Mapping[str, SummaryRanksValue] | None:
        """What each rank printed itself, by rank; absent unless several ranks printed steps or memory. The other
        figures of steps are of the rank with most records."""

class SummarySteps(View):
    @property
    def first(self) -> int | None:
        """Step number of the first record; null without records or without step numbers."""
    @property
    def last(self) -> int | None:
        """Step number of the last record; null without records or without step numbers."""
    @property
    def planned(self) -> int | None:
        """Steps that the run set out to do, as printed."""
    @property
    def record_count(self) -> int | None:
        """Step records that stand: printed once each, redraws collapsed, overtaken ones left out. Null where a problem
        leaves it open."""
    @property
    def restart_count(self) -> int | None:
        """How many times the run started again within the phase. Null where a problem leaves it open."""
    @property
    def superseded_count(self) -> int | None:
        """Records that a restart overtook; left out of every statistic. Null where a problem leaves it open."""
    @property
    def first_line(self) -> int | None:
        """Line of the first record that stands, from 1; null without records."""
    @property
    def last_line(self) -> int | None:
        """Line of the last record that stands."""
    @property
    def reached(self) -> int | None:
        """Step above the last record's that a later line shows: an evaluation, a checkpoint or a counter, by at most a
        stride. Absent without one."""

class SummarySteadyState(View):
    @property
    def rule(self) -> str:
        """Name and version of the rule; import/N where the window is that of an imported document."""
    @property
    def record_count(self) -> int:
        """Step records in the steady window."""
    @property
    def excluded_warmup(self) -> int:
        """Step records left out as warm-up."""
    @property
    def excluded_implausible(self) -> int:
        """Step records left out as impossible: a step time under 1 % of the median. Until derive/2 also those with an
        MFU above 1."""

class Stat(View):
    @property
    def id(self) -> int:
        """The metric's number in the registry: its identity, whatever its name becomes."""
    @property
    def window(self) -> Literal["all", "steady"]:
        """Which records min, max, mean, median and the counts are over: all of the phase's, or those of the steady
        state (summary.steady_state). A rate that was not printed for each step is over all."""
    @property
    def scope(self) -> Literal["global", "device", "rank"] | None:
        """What one value covers: the whole job, one device or one rank; null where the metric's name says it or nobody
        knows."""
    @property
    def definition(self) -> str | None:
        """Slug of what exactly the printed number means (such as ema_0.9_debiased) where the grammar knows; null
        otherwise."""
    @property
    def record_count(self) -> int | None:
        """Records in the window that carry a value, finite or not. An imported document may state figures without it;
        then it is 0. Null where a problem leaves it open."""
    @property
    def nonfinite_count(self) -> int | None:
        """How many of them are NaN or infinite; they are left out of the figures below. Null where a problem leaves it
        open."""
    @property
    def first(self) -> float | None:
        """First printed value, in any window; null when it is not finite."""
    @property
    def last(self) -> float | None:
        """Last printed value, in any window; null when it is not finite."""
    @property
    def min(self) -> float | None:
        """Smallest finite value in the window; null without one."""
    @property
    def max(self) -> float | None:
        """Largest finite value in the window; null without one."""
    @property
    def mean(self) -> float | None:
        """Exact mean of the finite values in the window, rounded once; null without one."""
    @property
    def median(self) -> float | None:
        """Exact median of the finite values in the window (mean of the two middle ones); null without one."""
    @property
    def places(self) -> Places | None:
        """Where the figures are in the log."""
    @property
    def printed_digits(self) -> PrintedDigits | None:
        """How many digits the values were printed with."""

class Places(View):
    @property
    def first_line(self) -> int | None:
        """Line of the first printed value, from 1."""
    @property
    def last_line(self) -> int | None:
        """Line of the last printed value."""
    @property
    def min_line(self) -> int | None:
        """Line of the first value that is the minimum; null without one."""
    @property
    def max_line(self) -> int | None:
        """Line of the first value that is the maximum; null without one."""
    @property
    def nan_count(self) -> int:
        """Values in the window that are not a number."""
    @property
    def nan_line(self) -> int | None:
        """Line of the first of them in the window."""
    @property
    def inf_count(self) -> int:
        """Values in the window that are infinite."""
    @property
    def inf_line(self) -> int | None:
        """Line of the first of them in the window."""
    @property
    def resolution(self) -> float | None:
        """Unit of the last digit that the values show, in base units: differences below it mean nothing. Null where it
        is unknown, as of whole numbers."""

class PrintedDigits(View):
    @property
    def least(self) -> int:
        """Fewest of any record; below 0 where whole tens or thousands were printed."""
    @property
    def greatest(self) -> int:
        """Most of any record."""

class OtherStat(View):
    @property
    def window(self) -> Literal["all", "steady"]:
        """Which records min, max, mean, median and the counts are over: all of the phase's, or those of the steady
        state (summary.steady_state). A rate that was not printed for each step is over all."""
    @property
    def scope(self) -> Literal["global", "device", "rank"] | None:
        """What one value covers: the whole job, one device or one rank; null where the metric's name says it or nobody
        knows."""
    @property
    def definition(self) -> str | None:
        """Slug of what exactly the printed number means (such as ema_0.9_debiased) where the grammar knows; null
        otherwise."""
    @property
    def record_count(self) -> int | None:
        """Records in the window that carry a value, finite or not. An imported document may state figures without it;
        then it is 0. Null where a problem leaves it open."""
    @property
    def nonfinite_count(self) -> int | None:
        """How many of them are NaN or infinite; they are left out of the figures below. Null where a problem leaves it
        open."""
    @property
    def first(self) -> float | None:
        """First printed value, in any window; null when it is not finite."""
    @property
    def last(self) -> float | None:
        """Last printed value, in any window; null when it is not finite."""
    @property
    def min(self) -> float | None:
        """Smallest finite value in the window; null without one."""
    @property
    def max(self) -> float | None:
        """Largest finite value in the window; null without one."""
    @property
    def mean(self) -> float | None:
        """Exact mean of the finite values in the window, rounded once; null without one."""
    @property
    def median(self) -> float | None:
        """Exact median of the finite values in the window (mean of the two middle ones); null without one."""
    @property
    def places(self) -> Places | None:
        """Where the figures are in the log."""
    @property
    def printed_digits(self) -> PrintedDigits | None:
        """How many digits the values were printed with."""

class DerivedStat(View):
    @property
    def id(self) -> int:
        """The metric's number in the registry: its identity, whatever its name becomes."""
    @property
    def window(self) -> Literal["all", "steady"]:
        """Which records min, max, mean, median and the counts are over: all of the phase's, or those of the steady
        state (summary.steady_state). A rate that was not printed for each step is over all."""
    @property
    def scope(self) -> Literal["global", "device", "rank"] | None:
        """What one value covers: the whole job, one device or one rank; null where the metric's name says it or nobody
        knows."""
    @property
    def definition(self) -> str | None:
        """Slug of what exactly the printed number means (such as ema_0.9_debiased) where the grammar knows; null
        otherwise."""
    @property
    def record_count(self) -> int | None:
        """Records in the window that carry a value, finite or not. An imported document may state figures without it;
        then it is 0. Null where a problem leaves it open."""
    @property
    def nonfinite_count(self) -> int | None:
        """How many of them are NaN or infinite; they are left out of the figures below. Null where a problem leaves it
        open."""
    @property
    def first(self) -> float | None:
        """First printed value, in any window; null when it is not finite."""
    @property
    def last(self) -> float | None:
        """Last printed value, in any window; null when it is not finite."""
    @property
    def min(self) -> float | None:
        """Smallest finite value in the window; null without one."""
    @property
    def max(self) -> float | None:
        """Largest finite value in the window; null without one."""
    @property
    def mean(self) -> float | None:
        """Exact mean of the finite values in the window, rounded once; null without one."""
    @property
    def median(self) -> float | None:
        """Exact median of the finite values in the window (mean of the two middle ones); null without one."""
    @property
    def inputs(self) -> Mapping[str, str | float | bool | None]:
        """What the figure was computed from: name to value or to where the value comes from."""

class SummaryConsistencyItem(View):
    @property
    def metric(self) -> str:
        """Name of the metric."""
    @property
    def reported(self) -> float | None:
        """The reported figure."""
    @property
    def derived(self) -> float | None:
        """The derived figure, over the same records."""
    @property
    def ratio(self) -> float | None:
        """Reported over derived; null where it cannot be computed."""
    @property
    def consistent(self) -> bool | None:
        """Whether the two agree within the tolerance of the derivation rules; null where the ratio is."""

class SummaryFlagsItem(View):
    @property
    def kind(self) -> Literal[
        "off_by_integer_factor", "mfu_above_one", "sparse_peak", "fixed_peak", "other_flops_convention",
        "impossible_steps", "peak_unknown",
    ]:
        """Slug of the kind."""
    @property
    def metric(self) -> str:
        """Metric that it is about."""
    @property
    def reported(self) -> float | None:
        """The printed figure, in base units; null where there is none."""
    @property
    def derived(self) -> float | None:
        """The figure recomputed, in base units; null where it cannot be."""
    @property
    def factor(self) -> float | None:
        """What the printed figure must be multiplied by; null where no factor explains it."""
    @property
    def count(self) -> int | None:
        """How many records it is about; null where it is about a figure of the whole phase."""
    @property
    def detail(self) -> str:
        """One sentence for people."""

class SummarySpikes(View):
    @property
    def rule(self) -> Literal["spikes/1", "spikes/2"]:
        """Version of the rule that finds them."""
    @property
    def metrics(self) -> Mapping[str, SummarySpikesMetricsValue]:
        """By metric."""
    @property
    def marked_count(self) -> int | None:
        """Jumps that the trainer itself marked in the log; null where it never does."""

class SummarySpikesMetricsValue(View):
    @property
    def count(self) -> int:
        """Records above the rule's warning factor of the average before them, the critical ones among them."""
    @property
    def critical_count(self) -> int:
        """Records beyond its critical factor."""
    @property
    def first(self) -> tuple[SummarySpikesMetricsValueFirstItem, ...]:
        """The first of them."""

class SummarySpikesMetricsValueFirstItem(View):
    @property
    def step(self) -> int | None:
        """Its step; null where none was printed."""
    @property
    def value(self) -> float:
        """The value printed."""
    @property
    def average(self) -> float:
        """What it is compared with: the median of the 100 values before it (spikes/2), or their running average
        (spikes/1)."""

class SummaryBottleneck(View):
    @property
    def rule(self) -> Literal["bottleneck/1"]:
        """Version of the rule that decides."""
    @property
    def verdict(self) -> Literal["inference", "training", "data", "compute", "balanced", "unknown"]:
        """The part of the pipeline that the rest waits for; unknown where the figures do not decide."""
    @property
    def medians(self) -> Mapping[str, float]:
        """The figures that it rests on, by name, in base units; slopes are per step."""
    @property
    def because(self) -> str:
        """One sentence for people: the comparison that decided."""

class SummaryMemory(View):
    @property
    def rule(self) -> Literal["memory/1"]:
        """Version of the rule that reads it."""
    @property
    def reading(self) -> Literal["steady", "growth", "fragmentation", "unknown"]:
        """steady: neither climbs; growth: allocated memory climbs; fragmentation: reserved memory climbs and allocated
        does not; unknown: too little was printed."""
    @property
    def figures(self) -> Mapping[str, float]:
        """The figures that it rests on, by name: bytes, counts, or bytes per step (slopes)."""
    @property
    def growing(self) -> str | None:
        """The bucket that grew most, where the log prints memory by bucket; null where none does."""
    @property
    def because(self) -> str:
        """One sentence for people."""

class SummaryTime(View):
    @property
    def first(self) -> str:
        """Earliest stamp, RFC 3339; with Z where the lines name their offset from UTC, else the local time of the
        machine that printed it."""
    @property
    def last(self) -> str:
        """Latest stamp, in the same form."""
    @property
    def zone(self) -> Literal["utc"] | None:
        """utc where the lines name their offset, so that the stamps are UTC; null where they name none."""
    @property
    def source(self) -> Literal["log_lines"]:
        """Where the stamps are from: log_lines, the heads of the log's lines; or when these came, if derivation.times
        is there."""

class SummaryStepTimes(View):
    @property
    def source(self) -> Literal["printed", "timestamps"]:
        """printed: as each record prints it; timestamps: between neighbouring records, all of them, gaps with an
        evaluation or a checkpoint left out. The timestamps are arrival times if derivation.times is there."""
    @property
    def record_count(self) -> int:
        """Step times that the figures are over."""
    @property
    def p5_s(self) -> float:
        """5 % of the step times are no longer."""
    @property
    def p50_s(self) -> float:
        """The median."""
    @property
    def p90_s(self) -> float:
        """90 % of the step times are no longer."""
    @property
    def p95_s(self) -> float:
        """95 % of the step times are no longer."""
    @property
    def p99_s(self) -> float:
        """99 % of the step times are no longer."""
    @property
    def mad_s(self) -> float:
        """Median absolute deviation from the median."""

class SummaryRealised(View):
    @property
    def duration_s(self) -> float:
        """Time between the two, by the stamps of their lines."""
    @property
    def step_count(self) -> int | None:
        """Steps in it; null without step numbers."""
    @property
    def tokens(self) -> float | None:
        """Tokens in it: growth of the printed total, else those of a step times the steps."""
    @property
    def samples(self) -> float | None:
        """Samples in it, likewise."""
    @property
    def steps_per_s(self) -> float | None:
        """step_count over duration_s."""
    @property
    def tokens_per_s(self) -> float | None:
        """tokens over duration_s."""
    @property
    def samples_per_s(self) -> float | None:
        """samples over duration_s."""

class SummaryIdentitiesItem(View):
    @property
    def name(self) -> Literal[
        "realised_tokens_per_s", "realised_samples_per_s", "tokens_of_a_step", "samples_times_length", "mfu_times_peak",
        "sum_of_step_times", "flops_of_a_token",
    ]:
        """Slug of the identity."""
    @property
    def left(self) -> float:
        """The left side of detail, in base units."""
    @property
    def right(self) -> float:
        """Its right side."""
    @property
    def ratio(self) -> float:
        """left over right."""
    @property
    def holds(self) -> bool | None:
        """Whether they are equal within the tolerance of the derivation rules; null where they are not and a convention
        may explain that."""
    @property
    def detail(self) -> str:
        """The identity, for people."""

class SummaryCheckpoints(View):
    @property
    def count(self) -> int:
        """Checkpoints."""
    @property
    def last_step(self) -> int | None:
        """Step of the last one."""
    @property
    def last_line(self) -> int:
        """Line of the last one, from 1."""
    @property
    def duration_s(self) -> float | None:
        """Seconds that they took together; null unless each is known."""
    @property
    def unsaved_step_count(self) -> int | None:
        """Steps from the last one to the last step reached: what a restart would repeat."""
    @property
    def unsaved_time_s(self) -> float | None:
        """Seconds from its line to that of the last step record, by their stamps; 0 where none follows."""
    @property
    def latest(self) -> tuple[SummaryCheckpointsLatestItem, ...]:
        """The last ones, in log order."""

class SummaryCheckpointsLatestItem(View):
    @property
    def step(self) -> int | None:
        """Its step: as printed, else that of the last step record before it, or of an evaluation between the two."""
    @property
    def line_number(self) -> int:
        """Its line, from 1."""
    @property
    def duration_s(self) -> float | None:
        """Seconds that it took: as printed, else between the step records around it, their steps left out."""

class SummaryPosition(View):
    @property
    def kind(self) -> Literal["samples", "tokens", "epoch_batch", "cursor"]:
        """What is counted: samples, tokens, batches of an epoch, or a cursor of the data loader."""
    @property
    def first(self) -> float | str | None:
        """The first position printed; text where it is no single number."""
    @property
    def last(self) -> float | str | None:
        """The last position printed, in the same form."""
    @property
    def by_step(self) -> float | None:
        """How much one step adds; null where that is not always the same."""
    @property
    def lines(self) -> tuple[int, ...]:
        """The lines of the first and of the last position."""

class SummarySlowSteps(View):
    @property
    def rule(self) -> str:
        """Rule of the search."""
    @property
    def step_count(self) -> int:
        """Slow steps."""
    @property
    def excess_s(self) -> float:
        """What they took beyond the medians before them, together."""
    @property
    def verdict(self) -> Literal[
        "data", "communication", "compute", "generation", "evaluation", "checkpoint",
    ] | None:
        """The cause of more than half of excess_s; null if no cause has as much."""
    @property
    def causes(self) -> Mapping[str, SummarySlowStepsCausesValue]:
        """Slow steps by cause. A step has one if a single part of it, as printed, grew by at least half of its excess;
        or if evaluations or checkpoints alone stand before slow steps. The cause of the others is not printed."""
    @property
    def longest(self) -> tuple[SummarySlowStepsLongestItem, ...]:
        """Those with the greatest excess, the greatest first."""

class SummarySlowStepsCausesValue(View):
    @property
    def step_count(self) -> int:
        """Slow steps that have it."""
    @property
    def excess_s(self) -> float:
        """What these took beyond the medians before them."""

class SummarySlowStepsLongestItem(View):
    @property
    def step(self) -> int | None:
        """Its number; null if none is printed."""
    @property
    def line_number(self) -> int:
        """Line on which its record begins."""
    @property
    def rank(self) -> int | None:
        """Rank that printed the record; null without a label."""
    @property
    def step_time_s(self) -> float:
        """Its time as printed."""
    @property
    def usual_s(self) -> float:
        """Median of the times before it."""
    @property
    def cause(self) -> Literal[
        "data", "communication", "compute", "generation", "evaluation", "checkpoint",
    ] | None:
        """The part that grew; null if the log does not print it."""
    @property
    def part_s(self) -> float | None:
        """Time of that part in this step; null if only its line shows it."""
    @property
    def usual_part_s(self) -> float | None:
        """Median of that part before it; 0 for an evaluation or a checkpoint."""
    @property
    def slow_ranks(self) -> tuple[SummarySlowStepsLongestItemSlowRanksItem, ...] | None:
        """Ranks that were slow at this step by their own times, at most eight; null if fewer than two ranks print a
        time of it."""

class SummarySlowStepsLongestItemSlowRanksItem(View):
    @property
    def rank(self) -> int:
        """The rank."""
    @property
    def cause(self) -> Literal[
        "data", "communication", "compute", "generation", "evaluation", "checkpoint",
    ] | None:
        """The part that grew there; null if it is not printed. A rank that waits for another one prints
        communication."""

class SummaryRanksValue(View):
    @property
    def record_count(self) -> int:
        """Different steps that it printed, and records without a step number."""
    @property
    def first(self) -> int | None:
        """The first step that it printed."""
    @property
    def last(self) -> int | None:
        """The last step that it printed."""
    @property
    def peak_memory_bytes(self) -> float | None:
        """The largest memory figure that it printed, in bytes: a peak where it prints peaks."""
    @property
    def median_step_time_s(self) -> float | None:
        """Median of the step times that it printed."""
    @property
    def straggles(self) -> bool | None:
        """Whether its median step time is over 1.1 times that of all ranks; null where fewer than three print one."""

class PhasesItem(View):
    @property
    def name(self) -> str | None:
        """Name of the phase; null when the log does not name it."""
    @property
    def summary(self) -> Summary:
        """Summary of the phase."""

class Checks(View):
    @property
    def finite_losses(self) -> bool | None:
        """Every training and validation loss printed is a finite number. Null when no loss was printed."""
    @property
    def zero_exit_code(self) -> bool | None:
        """The job ended with exit code 0. False also where an error or a stop that the run did not get over ended it;
        null when neither the log nor the caller says."""
    @property
    def has_steps(self) -> bool | None:
        """At least one training step was recognised. Null where unread lines of the log may be steps, or an imported
        document does not tell."""
    @property
    def no_oom(self) -> bool | None:
        """Neither device nor host ran out of memory for good. Null when the log cannot prove it (it breaks off)."""
    @property
    def steps_monotonic(self) -> bool | None:
        """Within each attempt the step number only grew. Null without step numbers."""
    @property
    def completed(self) -> bool | None:
        """The run did what it set out to do: its end was printed, or the last planned step was reached. Null when
        unknown."""
    @property
    def mfu_plausible(self) -> bool | None:
        """No printed MFU is above 1 or below 0. Null when none was printed."""
    @property
    def throughput_consistent(self) -> bool | None:
        """Reported throughput agrees with the derived one. Null when there is nothing to compare."""

class Failure(View):
    @property
    def reason(self) -> Literal[
        "cuda_oom", "host_oom", "nan_loss", "nccl_timeout", "nccl_error", "cuda_error", "ecc_or_xid", "preempted",
        "time_limit", "killed", "segfault", "disk_full", "import_error", "child_failed", "traceback", "interrupted",
        "truncated", "no_grammar_match", "unknown",
    ]:
        """Stable slug of the most specific cause."""
    @property
    def category(self) -> Literal[
        "memory", "hardware", "network", "numerics", "scheduler", "signal", "storage", "environment", "code", "unknown",
    ]:
        """What kind of cause it is."""
    @property
    def line_number(self) -> int | None:
        """Line of the log that shows the cause, from 1."""
    @property
    def message(self) -> str | None:
        """The cause as printed, bounded and free of control characters and secrets."""
    @property
    def log_tail(self) -> tuple[str, ...]:
        """Last lines of the log, at most 50 and 8 KiB of UTF-8 together, free of control characters and secrets."""
    @property
    def markers(self) -> tuple[Marker, ...]:
        """The markers that the run did not get over, in log order, at most 20."""
    @property
    def exception(self) -> FailureException | None:
        """The exception that ended the run, as its traceback prints it: of chained and remote ones the innermost; null
        where the log shows none."""
    @property
    def culprit(self) -> Party | None:
        """Who failed first; null where the log names neither a rank nor a host."""
    @property
    def victims(self) -> FailureVictims | None:
        """Who failed only because another did: ranks that waited in vain, and peers that were stopped."""
    @property
    def retry(self) -> FailureRetry | None:
        """Whether running the job again would help, and the rule that says so."""
    @property
    def progress(self) -> FailureProgress | None:
        """The last sign of progress before the end; null where there is no step record."""

class Marker(View):
    @property
    def id(self) -> str:
        """Id of the marker in the catalogue; or loss_diverged, an observation over the values of the loss: at least 20
        finite ones above 0, of which the median of the last tenth (1 to 10 records) is over 1.5 times that of the first
        tenth and over twice the lowest."""
    @property
    def reason(self) -> Literal[
        "cuda_oom", "host_oom", "nan_loss", "nccl_timeout", "nccl_error", "cuda_error", "ecc_or_xid", "preempted",
        "time_limit", "killed", "segfault", "disk_full", "import_error", "child_failed", "traceback", "interrupted",
        "truncated", "no_grammar_match", "unknown",
    ] | None:
        """Failure slug that the marker stands for; null for observations and completions."""
    @property
    def role(self) -> Literal[
        "cause", "stop", "error", "consequence", "observation", "restart", "completion", "exit_code",
    ]:
        """What the marker says: the cause, an external stop, an error, a mere consequence, an observation, a restart of
        the same run, completion, or an exit code."""
    @property
    def count(self) -> int:
        """How many times it was seen."""
    @property
    def first_line(self) -> int:
        """Line of its first occurrence, from 1."""
    @property
    def last_line(self) -> int:
        """Line of its last occurrence, from 1."""
    @property
    def message(self) -> str:
        """Its first occurrence as printed, bounded and free of control characters and secrets."""

class FailureException(View):
    @property
    def type(self) -> str:
        """Its type as printed, with the module where that is printed."""
    @property
    def message(self) -> str | None:
        """What it says behind its type, bounded and free of control characters and secrets; null where it says
        nothing."""
    @property
    def line_number(self) -> int:
        """Line of the log that names it, from 1."""
    @property
    def frame(self) -> FailureExceptionFrame | None:
        """Innermost frame of its traceback below the folder of the first file that is no installed package, standard
        library or generated code, or of all if every file is; null if the log shows none."""

class FailureExceptionFrame(View):
    @property
    def file(self) -> str:
        """Path as printed."""
    @property
    def line(self) -> int:
        """Line of that file, from 0."""
    @property
    def function(self) -> str | None:
        """Name of the function as printed; null where none is."""
    @property
    def relative(self) -> str | None:
        """The file below that folder; null or absent if it is installed."""

class Party(View):
    @property
    def rank(self) -> int | None:
        """Global rank; null where the log does not name it."""
    @property
    def host(self) -> str | None:
        """Name of its host as printed; null where the log does not name it."""
    @property
    def reason(self) -> str | None:
        """Slug of what the log says of it; null where it says nothing."""
    @property
    def line_number(self) -> int | None:
        """First line of the log that says so, from 1."""
    @property
    def enqueued(self) -> int | None:
        """Number of the collective that it enqueued last, as NCCL's watchdog prints it; null where it does not."""
    @property
    def completed(self) -> int | None:
        """Number of the collective that it completed last, as NCCL's watchdog prints it; null where it does not."""

class FailureVictims(View):
    @property
    def count(self) -> int:
        """How many there are."""
    @property
    def first(self) -> tuple[Party | None, ...]:
        """The first of them by rank, at most 20."""

class FailureRetry(View):
    @property
    def verdict(self) -> Literal["would_repeat", "same", "elsewhere", "fix_first", "unknown"] | None:
        """would_repeat: it would fail in the same place, for an error in the user's own file. Null: the log does not
        tell. Until derive/3 same: once more as it is; elsewhere: on other machines; fix_first: it will fail again;
        unknown."""
    @property
    def rule(self) -> str | None:
        """Where the verdict comes from: exception:TYPE; until derive/3 marker:ID for an entry of the marker catalogue
        with a verdict of its own, else reason:SLUG. Null without a verdict."""

class FailureProgress(View):
    @property
    def line_number(self) -> int:
        """Line of the last step record, from 1."""
    @property
    def step(self) -> int | None:
        """Its step; null where none is printed."""
    @property
    def silence_s(self) -> float | None:
        """Seconds between it and the last stamp of the log, by the log's own stamps; null where they do not tell."""
    @property
    def usual_s(self) -> float | None:
        """Median of the seconds between the stamps of neighbouring step records; null where they do not tell."""
    @property
    def stalled(self) -> bool | None:
        """True where the silence is longer than ten times the usual gap and than five minutes: nothing moved any more,
        whoever ended the job afterwards. Null where the stamps do not tell."""

class Goodput(View):
    @property
    def goodput_ratio(self) -> float:
        """Share of the wall time spent in training steps that stand, 0 to 1."""
    @property
    def wall_time_s(self) -> float:
        """Wall time in seconds."""
    @property
    def step_time_s(self) -> float:
        """Time in seconds spent in training steps that stand."""
    @property
    def badput_s(self) -> GoodputBadputS:
        """Seconds of wall time by what they were lost to; null where the log does not tell."""
    @property
    def evidence(self) -> str:
        """Slug of what the wall time rests on, such as log_timestamps, or arrival (derivation.times)."""
    @property
    def rule(self) -> Literal["goodput/1"] | None:
        """Version of the rule that attributes wall time."""
    @property
    def phase(self) -> str | None:
        """Phase that the wall time is of, where it is not of the whole run; null where it is."""
    @property
    def step_evidence(self) -> str | None:
        """Slug of what step_time_s rests on: trainer_total (printed by the trainer), step_times (sum of the printed
        step times, the excess of warm-up records left out) trainer_loop (the trainer's printed duration of its training
        loop, less the evaluations in it: an upper bound), log_timestamps (between step lines), arrival (between when
        they came) or mixed (phases rest on different evidence)."""
    @property
    def parts(self) -> GoodputParts | None:
        """How each class of lost time is known. The seconds of a part are those of badput_s."""
    @property
    def range(self) -> GoodputRange | None:
        """Least and greatest goodput that the evidence allows; equal where goodput is known. goodput_ratio is one of
        the two."""
    @property
    def stalls(self) -> GoodputStalls | None:
        """Silences between neighbouring step records that neither their steps nor a known event explain. Their seconds
        are part of idle. Null where the records have no stamps."""

class GoodputBadputS(View):
    @property
    def checkpoint(self) -> float | None:
        """Writing and loading checkpoints."""
    @property
    def eval(self) -> float | None:
        """Evaluation."""
    @property
    def compilation(self) -> float | None:
        """Compilation."""
    @property
    def data_loading(self) -> float | None:
        """Waiting for data."""
    @property
    def initialization(self) -> float | None:
        """From the start to the first step, as far as nothing else explains it."""
    @property
    def wasted_progress(self) -> float | None:
        """Steps that a restart overtook."""
    @property
    def gpu_idle(self) -> float | None:
        """Steps in which no GPU did anything, by the samples in derivation.samples: below 5 % in the sample that ends a
        pause. Absent without samples of nearly all steps, or if none shows a GPU that works."""
    @property
    def idle(self) -> float | None:
        """What is left."""

class GoodputParts(View):
    @property
    def checkpoint(self) -> Badput:
        """What is known of checkpoint; UNPRODUCTIVE_CHECKPOINT_SAVE_TIME and UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME in
        ml-goodput-measurement."""
    @property
    def eval(self) -> Badput:
        """What is known of eval; CUSTOM_BADPUT_EVENTS (eval) in ml-goodput-measurement."""
    @property
    def compilation(self) -> Badput:
        """What is known of compilation; PROGRAM_STARTUP in ml-goodput-measurement."""
    @property
    def data_loading(self) -> Badput:
        """What is known of data_loading; DATA_LOADING_SYNC and DATA_LOADING_ASYNC in ml-goodput-measurement."""
    @property
    def initialization(self) -> Badput:
        """What is known of initialization; TPU_INITIALIZATION and TRAINING_PREP in ml-goodput-measurement."""
    @property
    def wasted_progress(self) -> Badput:
        """What is known of wasted_progress; WASTED_PROGRESS_FROM_DISRUPTION in ml-goodput-measurement."""
    @property
    def gpu_idle(self) -> Badput | None:
        """What is known of gpu_idle, which ml-goodput-measurement does not have; there if derivation.samples is."""
    @property
    def idle(self) -> Badput:
        """What is known of idle; OTHER in ml-goodput-measurement."""

class Badput(View):
    @property
    def how(self) -> Literal["measured", "inferred", "unknown"]:
        """measured: its beginning and end, or its duration, stand in the log; inferred: computed from other figures;
        unknown: the log does not tell."""
    @property
    def count(self) -> int | None:
        """How many spans it is made of; null where they were not counted."""
    @property
    def overlapped_s(self) -> float | None:
        """Seconds of it that ran beside other work and are therefore no part of badput_s; null where unknown."""

class GoodputRange(View):
    @property
    def low(self) -> float | None:
        """Least share of the wall time in steps that stand; null where nothing bounds it from below."""
    @property
    def high(self) -> float:
        """Greatest share of the wall time in steps that stand."""

class GoodputStalls(View):
    @property
    def count(self) -> int:
        """Number of stalls."""
    @property
    def total_s(self) -> float:
        """Seconds of all stalls beyond the ordinary steps in them."""
    @property
    def doubtful(self) -> bool:
        """Whether so many gaps are long that slow steps may be among them; goodput is a range then."""
    @property
    def longest(self) -> tuple[GoodputStallsLongestItem, ...]:
        """The ten longest stalls, the longest first."""

class GoodputStallsLongestItem(View):
    @property
    def after_line(self) -> int:
        """Line of the record before the silence, from 1."""
    @property
    def line_number(self) -> int:
        """Line of the record behind the silence, from 1."""
    @property
    def duration_s(self) -> float:
        """Seconds beyond the ordinary steps."""

class Cost(View):
    @property
    def rule(self) -> str:
        """Version of the rule."""
    @property
    def wall_time_s(self) -> float | None:
        """Seconds that were paid for: the wall time of goodput, else the stated one, else that from the first stamp of
        the log to the last."""
    @property
    def wall_evidence(self) -> str | None:
        """Slug of where the time comes from, as in goodput.evidence."""
    @property
    def device_count(self) -> int | None:
        """Devices of the job."""
    @property
    def device_count_source(self) -> str | None:
        """Where their number comes from: a fact of the log, stated, or header:POINTER."""
    @property
    def device_hours(self) -> float | None:
        """Devices times hours."""
    @property
    def price_per_hour(self) -> float | None:
        """Stated price of an hour of the whole job, in the currency."""
    @property
    def price_per_device_hour(self) -> float | None:
        """Stated price of an hour of one device, in the currency."""
    @property
    def price_source(self) -> str | None:
        """Where the price comes from: stated, or header:POINTER."""
    @property
    def currency(self) -> str | None:
        """Currency of prices and amount; null where nobody stated one."""
    @property
    def amount(self) -> float | None:
        """Price times the hours that it is of."""
    @property
    def power_w_per_device(self) -> float | None:
        """Power of one device in watts: the mean of what the log prints, else stated."""
    @property
    def power_source(self) -> str | None:
        """Where the power comes from: metric:NAME, stated, or header:POINTER."""
    @property
    def energy_j(self) -> float | None:
        """Power times devices times seconds, in joules."""

class AttachmentsItem(View):
    @property
    def kind(self) -> str:
        """What it is, such as torch_profile."""
    @property
    def uri(self) -> str:
        """Where it is."""
    @property
    def sha256(self) -> str | None:
        """SHA-256 of its bytes."""
    @property
    def size_bytes(self) -> int | None:
        """Its size in bytes."""

class EvidenceItem(View):
    @property
    def source(self) -> Literal[
        "slurm_sacct", "slurm_scontrol", "htcondor", "kubernetes_pod", "sagemaker", "skypilot",
    ]:
        """Form of the document that it was read from."""
    @property
    def sha256(self) -> str:
        """SHA-256 of that document."""
    @property
    def size_bytes(self) -> int:
        """Size of that document."""
    @property
    def job_id(self) -> str | None:
        """Id of the job: namespace/name of a pod, cluster.process of HTCondor."""
    @property
    def name(self) -> str | None:
        """Name of the job."""
    @property
    def state(self) -> str | None:
        """State in the scheduler's own words."""
    @property
    def ended(self) -> Literal[
        "completed", "failed", "out_of_memory", "timeout", "preempted", "node_failure", "cancelled", "not_ended",
        "unknown",
    ]:
        """How the job ended; not_ended for one that waited or ran when the document was written."""
    @property
    def reason(self) -> str | None:
        """Reason in the scheduler's own words, secrets masked."""
    @property
    def exit_code(self) -> int | None:
        """Exit code of the job (of a pod: of its first container that failed, else of its first); negative for a
        signal."""
    @property
    def submitted_at(self) -> str | None:
        """When the job was submitted, RFC 3339; with Z in UTC, else the local time of the scheduler."""
    @property
    def started_at(self) -> str | None:
        """When it started, in the same form."""
    @property
    def finished_at(self) -> str | None:
        """When it ended, in the same form; null for a job that has not ended."""
    @property
    def zone(self) -> Literal["utc"] | None:
        """utc where the times name their offset; null for local times, and without times."""
    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of its nodes, 1024 at most."""
    @property
    def node_count(self) -> int | None:
        """Number of its nodes."""
    @property
    def max_rss_bytes(self) -> int | None:
        """Largest resident memory of one of its tasks or processes that the scheduler sampled."""
    @property
    def memory_limit_bytes(self) -> int | None:
        """Memory that the job was granted, over all its nodes or containers."""
    @property
    def restart_count(self) -> int | None:
        """How often the scheduler started it again."""

class Derivation(View):
    @property
    def grammars(self) -> tuple[DerivationGrammarsItem, ...]:
        """Grammars that read the log; the first is the primary phase's. Empty when none recognised it."""
    @property
    def candidates(self) -> tuple[DerivationCandidatesItem, ...] | None:
        """Readings that competed for the log, the best first; absent where no other one explains a step record."""
    @property
    def markers(self) -> DerivationMarkers:
        """The failure-marker catalogue."""
    @property
    def registry(self) -> DerivationRegistry:
        """The metric registry."""
    @property
    def peaks(self) -> DerivationPeaks | None:
        """The table of accelerator peaks: what a recomputed MFU is divided by where the log names the device and no
        peak."""
    @property
    def rules(self) -> str:
        """Version of everything in code that decides derived bytes: derive/N where a log was read, import/N where a
        document of another system was."""
    @property
    def log(self) -> DerivationLog:
        """The log, decompressed."""
    @property
    def origin(self) -> DerivationOrigin | None:
        """Which document of another system the receipt was made from. Absent where a log was read. Where it is present,
        derivation.log is of that document (and its files, where it is made of several), no grammar was used, and rules
        is import/N."""
    @property
    def options(self) -> DerivationOptions:
        """Options that change derived bytes, as given."""
    @property
    def launches(self) -> DerivationLaunches | None:
        """Which of the runs that the log holds one after the other the receipt is of (a queue job, a sweep, an appended
        log); restarts of one run are attempts of it and no launches. Absent when the log holds one run."""
    @property
    def lines(self) -> DerivationLines:
        """What became of the records. The four counts add up to log.record_count."""
    @property
    def cells(self) -> DerivationCells | None:
        """The ledger of numeric cells of the records that rules read: each is read into a field, kept under its label
        as another metric, or dropped."""
    @property
    def near_misses(self) -> DerivationNearMisses:
        """Lines almost read: records that look like a rule's and do not match it. The format may have changed."""
    @property
    def problems(self) -> DerivationProblems:
        """What was wrong with the log or ambiguous in it; a value in doubt is left out."""
    @property
    def times(self) -> DerivationTimes | None:
        """The file beside the log that tells when each line arrived (receipt-times/1), if the times in this receipt are
        from it; null or absent if the log has stamps of its own, or no such file fits it."""
    @property
    def samples(self) -> DerivationSamples | None:
        """The file beside the log that tells what the GPUs did (receipt-gpu/1), if goodput has the class gpu_idle from
        it; absent if not."""
    @property
    def check_lines(self) -> Mapping[str, int | None] | None:
        """The line that decided each check, by the name of the check; null where no single line does."""
    @property
    def observed(self) -> tuple[Marker, ...]:
        """Every marker that was seen, in log order, at most 20, whether the run got over it or not."""
    @property
    def redactions(self) -> Mapping[str, int] | None:
        """How often each class of secret was masked in the derived part of this document: the number of
        [redacted:CLASS] that stand in phases, failure and derivation (summary repeats a phase). One secret that three
        places quote counts three times; empty where nothing was masked."""
    @property
    def tool_version(self) -> str:
        """Version of the program that derived; the one field left out when receipts are compared byte by byte."""

class DerivationGrammarsItem(View):
    @property
    def id(self) -> str:
        """Id of the grammar."""
    @property
    def version(self) -> int:
        """Version of the grammar."""
    @property
    def sha256(self) -> str:
        """SHA-256 of the grammar's file."""
    @property
    def chosen_by(self) -> Literal["only_version", "evidence", "default", "option"]:
        """Why this version of the id: it is the only one, the log shows it, nothing shows any (the newest is taken), or
        the caller said so."""

class DerivationCandidatesItem(View):
    @property
    def grammar(self) -> str:
        """Id of the grammar; generic is what was learned from the log."""
    @property
    def record_count(self) -> int:
        """Step records that it explains."""
    @property
    def share(self) -> float:
        """These among the records of the log."""

class DerivationMarkers(View):
    @property
    def version(self) -> int:
        """Version of the catalogue."""
    @property
    def sha256(self) -> str:
        """SHA-256 of its file."""

class DerivationRegistry(View):
    @property
    def version(self) -> int:
        """Version of the registry."""
    @property
    def sha256(self) -> str:
        """SHA-256 of its file."""

class DerivationPeaks(View):
    @property
    def version(self) -> int:
        """Version of the table."""
    @property
    def sha256(self) -> str:
        """SHA-256 of its file."""

class DerivationLog(View):
    @property
    def sha256(self) -> str:
        """SHA-256 of the decompressed bytes."""
    @property
    def size_bytes(self) -> int:
        """Number of decompressed bytes."""
    @property
    def line_count(self) -> int:
        """Newline characters, as wc -l counts, plus one for an unterminated last line."""
    @property
    def record_count(self) -> int:
        """Records after progress-bar redraws were split at carriage returns."""
    @property
    def files(self) -> tuple[DerivationLogFilesItem, ...] | None:
        """The files that were read as one run, in the order in which their lines are counted; absent for a log of one
        file. sha256 above is then of the digests of this list, each as 64 hex digits and a newline; the sizes and
        counts add up to those above."""
    @property
    def time(self) -> DerivationLogTime | None:
        """Earliest and latest stamp in the first and the last 32 KiB of the log, where the run has no summary.time;
        absent where there is none. Stamps count at the beginning of a line and behind words such as START TIME."""

class DerivationLogFilesItem(View):
    @property
    def name(self) -> str:
        """Its path below the folder that all files have in common: ranks and the order of parts are read from it."""
    @property
    def rank(self) -> int | None:
        """Rank that wrote the file, as its name says; null where it does not."""
    @property
    def sha256(self) -> str:
        """SHA-256 of its decompressed bytes."""
    @property
    def size_bytes(self) -> int:
        """Number of its decompressed bytes."""
    @property
    def line_count(self) -> int:
        """Its lines. Line numbers of the receipt count through the files: the first line of a file follows the last one
        of the file before."""

class DerivationLogTime(View):
    @property
    def first(self) -> str:
        """Earliest stamp, RFC 3339; with Z where the stamps name their offset from UTC, else the local time of the
        machine that printed it."""
    @property
    def last(self) -> str:
        """Latest stamp, in the same form."""
    @property
    def zone(self) -> Literal["utc"] | None:
        """utc where the stamps name their offset; null for a local time."""
    @property
    def source(self) -> str:
        """log_ends: lines at the beginning and the end of the log."""

class DerivationOrigin(View):
    @property
    def kind(self) -> Literal["import"]:
        """How the receipt came about."""
    @property
    def format(self) -> str:
        """Slug of the format that was read, such as hf-trainer-state."""
    @property
    def format_version(self) -> str | None:
        """Version of its format that the document states, as text; null when it states none."""
    @property
    def producer(self) -> str | None:
        """Program that wrote the document, as far as the document says, with its version after a blank where known."""

class DerivationOptions(View):
    @property
    def grammar(self) -> str | None:
        """Grammar that the caller chose, as id@vN."""
    @property
    def exit_code(self) -> int | None:
        """Exit code of the job that the caller stated."""
    @property
    def wall(self) -> DerivationOptionsWall | None:
        """Wall time that the caller stated; null or absent where the log alone speaks."""
    @property
    def log_complete(self) -> bool | None:
        """False where the caller stated that output is missing at the end of the log, which then cannot prove that the
        run completed; null or absent otherwise."""
    @property
    def running(self) -> str | None:
        """True where the log was read while the job could still run, so that where it breaks off is no failure; absent
        otherwise."""
    @property
    def replaced_bytes(self) -> int | None:
        """Bytes that the followed file held before it was replaced or rewritten, which are not in this log; absent
        otherwise."""
    @property
    def job(self) -> DerivationOptionsJob | None:
        """How the job ended, from the first entry of evidence that has an end; it counts where the log names no cause.
        Absent without such an entry."""
    @property
    def facts(self) -> tuple[DerivationOptionsFactsItem, ...] | None:
        """Facts that the caller stated, one for each name, ordered by name; they complete figures where the log prints
        none. Absent where none were stated."""

class DerivationOptionsWall(View):
    @property
    def seconds(self) -> float:
        """Seconds from start to end."""
    @property
    def evidence(self) -> str:
        """Slug of where it comes from: stated, receipt_run, started_and_finished (run.started_at and run.finished_at of
        a file), wandb_summary or nanochat_report."""
    @property
    def phase(self) -> str | None:
        """Phase that it is of; null for the whole run."""

class DerivationOptionsJob(View):
    @property
    def source(self) -> str:
        """source of the entry."""
    @property
    def ended(self) -> Literal[
        "completed", "failed", "out_of_memory", "timeout", "preempted", "node_failure", "cancelled",
    ]:
        """ended of the entry."""
    @property
    def state(self) -> str | None:
        """state of the entry."""
    @property
    def exit_code(self) -> int | None:
        """exit_code of the entry."""

class DerivationOptionsFactsItem(View):
    @property
    def name(self) -> Literal[
        "accelerator_name", "currency", "flops_per_token", "parameter_count", "peak_flops_per_s_per_device",
        "power_w_per_device", "price_per_device_hour", "price_per_hour", "samples_per_step", "sequence_length",
        "tokens_per_step", "world_size",
    ]:
        """Name of the fact, in base units: a price is per hour, of the job or of one device; power is that of one
        device, in watts."""
    @property
    def value(self) -> float | str:
        """The value: a text for accelerator_name and currency, else a number above 0."""
    @property
    def source(self) -> str:
        """Where it comes from: stated (by the caller), or header:POINTER, a value of the header that the job
        collected."""

class DerivationLaunches(View):
    @property
    def count(self) -> int:
        """Number of runs in the log."""
    @property
    def used(self) -> int:
        """The one that the receipt is of, counted from 1; the last one unless the caller asked for all."""
    @property
    def first_line(self) -> int:
        """Line with which it begins, from 1."""

class DerivationLines(View):
    @property
    def matched(self) -> int:
        """Records that a rule of a grammar read."""
    @property
    def ignored(self) -> int:
        """Records that a grammar, an envelope or a marker knows and that carry no figure, and blank ones."""
    @property
    def unmatched(self) -> int:
        """Records that nothing explains."""
    @property
    def undecodable(self) -> int:
        """Records with bytes that are no text."""

class DerivationCells(View):
    @property
    def read(self) -> Cells:
        """Numbers that a rule reads into a field, by field."""
    @property
    def other(self) -> Cells:
        """Numbers that no rule names, kept in other_metrics, by label."""
    @property
    def dropped(self) -> Cells:
        """Labelled numbers of steps and evaluations that are in no figure, by label: the label is printed twice in a
        record, or the rule keeps only what it names."""

class Cells(View):
    @property
    def count(self) -> int:
        """Number of cells."""
    @property
    def by_key(self) -> Mapping[str, int]:
        """Number of cells by key: at most 256 keys, those with the most cells."""

class DerivationNearMisses(View):
    @property
    def count(self) -> int:
        """How many there are."""
    @property
    def first(self) -> tuple[DerivationNearMissesFirstItem, ...]:
        """The first of them."""

class DerivationNearMissesFirstItem(View):
    @property
    def grammar(self) -> str:
        """Grammar of the rule, as id@vN."""
    @property
    def rule(self) -> str:
        """Name of the rule."""
    @property
    def line_number(self) -> int:
        """Line of the record, from 1."""
    @property
    def excerpt(self) -> str:
        """The record, bounded and free of control characters and secrets."""

class DerivationProblems(View):
    @property
    def count(self) -> int:
        """How many there are."""
    @property
    def first(self) -> tuple[DerivationProblemsFirstItem, ...]:
        """The first of them."""
    @property
    def kinds(self) -> Mapping[str, int] | None:
        """How many of each kind there are."""

class DerivationProblemsFirstItem(View):
    @property
    def kind(self) -> str:
        """Stable slug of the problem."""
    @property
    def line_number(self) -> int | None:
        """Line of the record, from 1; null when it is about the log as a whole."""
    @property
    def detail(self) -> str:
        """What is wrong, in words."""
    @property
    def excerpt(self) -> str | None:
        """The record, bounded and free of control characters and secrets."""
    @property
    def lines(self) -> tuple[int, ...] | None:
        """Lines that contradict each other, or examples."""
    @property
    def fields(self) -> tuple[str, ...] | None:
        """JSON pointers of the figures that are null because of it."""

class DerivationTimes(View):
    @property
    def sha256(self) -> str:
        """SHA-256 of the file."""
    @property
    def size_bytes(self) -> int:
        """Number of its bytes."""
    @property
    def resolution_ms(self) -> float:
        """Milliseconds within which lines may have one time though they came one after the other."""

class DerivationSamples(View):
    @property
    def sha256(self) -> str:
        """SHA-256 of the file."""
    @property
    def size_bytes(self) -> int:
        """Number of its bytes."""
