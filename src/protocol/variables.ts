// The environment variables of tensorfx, in one list: `environmentVariable` takes no other name that begins with TENSORFX_, each option of `config` has its variable here, and
// `tensorfx doctor` shows them.

/** What a variable does. */
export interface Variable {
  readonly text: string
  /** The command that sets it, for the programs that it starts; without it, users do. */
  readonly setBy?: string
}

/** The variables by name. Programs only load the names of those that they read: this table is loaded by the command. */
export const VARIABLES = {
  TENSORFX_LOGS: { text: 'what compile logs to standard error: graph_breaks,recompiles,+dynamo,-inductor' },
  TENSORFX_TRACE: { text: 'the folder that a trace of the program is written to: tensorfx report shows it' },
  TENSORFX_VERIFY: { text: '1: graphs are verified after each pass' },
  TENSORFX_FX_GRAPH_SHOW_STRIDE: { text: '1: printed graphs show strides' },
  TENSORFX_FX_GRAPH_SHOW_DEVICE: { text: '1: printed graphs show devices' },
  TENSORFX_RELAXED: { text: 'backends.wasm.relaxed: 0 leaves fused multiply-add (relaxed SIMD) out, 1 demands it; auto' },
  TENSORFX_EMITTER: { text: 'c: kernels are machine code from their first call on, after native.init(); wasm: none is' },
  TENSORFX_NUM_THREADS: { text: 'torch.setNumThreads: how many threads compute; the cores, 4 at most' },
  TENSORFX_CACHE_DIR: { text: 'native.init: the folder in which compiled code is kept for later processes' },
  TENSORFX_MEMORY_LIMIT: { text: 'config.memoryLimit: the bytes that tensors and kernels of a thread may use' },
  TENSORFX_MEMORY_HISTORY: { text: 'config.memoryHistory: 1 records the lines that make tensors' },
  TENSORFX_SUPPRESS_ERRORS: { text: 'config.suppressErrors: 1 replaces a backend that fails by eager, with a warning' },
  TENSORFX_RECOMPILE_LIMIT: { text: 'config.recompileLimit: compiled paths of a function before it runs eagerly; 8' },
  TENSORFX_COMPILE_BUDGET: { text: 'config.compileBudget: milliseconds for graphs that are used once; 2000' },
  TENSORFX_ASSUME_STATIC_BY_DEFAULT: { text: 'config.assumeStaticByDefault: 0 makes sizes of at least 2 symbols from the first call; 1' },
  TENSORFX_VERIFY_SIZES: { text: 'config.verifySizes: 1 compares what is kept for lists of sizes with the operators at every call' },
  TENSORFX_REPRO_AFTER: { text: 'config.reproAfter: dynamo watches captured graphs, aot forward and backward graphs' },
  TENSORFX_REPRO_LEVEL: { text: 'config.reproLevel: 1 dumps a repro on failure, 2 a minifier, 3 before each run, 4 checks accuracy; 2' },
  TENSORFX_REPRO_FORWARD_ONLY: { text: 'config.reproForwardOnly: 1 checks the accuracy of the forward only' },
  TENSORFX_REPRO_TOLERANCE: { text: 'config.reproTolerance: the tolerance of accuracy checks; 1e-3' },
  TENSORFX_REPRO_IGNORE_NON_FP: { text: 'config.reproIgnoreNonFp: 1 ignores differences in integers and booleans' },
  TENSORFX_REPRO_HISTORY: { text: "config.reproHistory: how many of a graph's calls a script can replay; 8" },
  TENSORFX_SAME_TWO_MODELS_USE_FP64: { text: 'config.sameTwoModelsUseFp64: 0 does not compare with a float64 run' },
  TENSORFX_DEBUG_DIR_ROOT: { text: 'config.debugDirRoot: the folder of dumps; ./tensorfx_compile_debug' },
  TENSORFX_DISTRIBUTED_DEBUG: { text: 'how much of the collectives is checked: OFF, INFO or DETAIL' },
  TENSORFX_MPIRUN: { text: 'the launcher of MPI; mpirun' },
  TENSORFX_MPI_LIBRARY: { text: 'the file of the MPI library' },
  TENSORFX_MPI_NODES: { text: 'for tests: ranks act as if they were on this many machines' },
  TENSORFX_RUN_DIR: { text: 'the folder that the ranks of a run share', setBy: 'tensorfx run' },
  TENSORFX_RESTART_COUNT: { text: 'how often the ranks were started again: restartCount()', setBy: 'tensorfx run' },
  TENSORFX_CANDIDATE: { text: 'the path of the candidate', setBy: 'tensorfx minify' },
  TENSORFX_CANDIDATE_INPUTS: { text: 'the path of its inputs', setBy: 'tensorfx minify' },
} as const satisfies Readonly<Record<`TENSORFX_${string}`, Variable>>

/** The name of a variable. */
export type VariableName = keyof typeof VARIABLES
