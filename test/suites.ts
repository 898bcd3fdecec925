// Which test files run in which part of the suite. Files that are not named here share processes and run with `npm test`. Paths are globs below the root.
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isFull, rotation } from './helpers/rotation.ts'

/** Files that need a process of their own, by the reason. */
const OWN_PROCESS: Readonly<Record<string, readonly string[]>> = {
  'limits the whole heap, or lets its allocations fail, which other files would meet': ['test/memory/{faults,limit}.test.ts'],
  'measures memory, from a heap that nothing has used': ['test/memory/{flat,soak,whole}.test.ts', 'test/fuzz/heap.test.ts'],
  'runs on a checked heap, which must be there from the first tensor on': ['test/fuzz/operators.test.ts'],
  'counts what all caches of kernels hold': ['test/kernels/run/boundedCache.test.ts'],
  'chooses tiles for machine code, for the rest of its process': ['test/native/native.test.ts'],
  'registers an operator, which stays a member of tensors': ['test/ops/define/customOperator.test.ts'],
  'keeps compiled graphs, and what kernels were compiled from, which is not known of those that other files have compiled': [
    'test/inductor/{keptGraph,draws}.test.ts',
  ],
  'draws with Graphviz, whose code has trapped in processes that had run many other files': [
    'test/cli/graph.test.ts',
    'test/fx/viewer/{svgTrap,viewer}.test.ts',
    'test/fx/passes/dot/graphDrawer.test.ts',
  ],
  'is a program that does not import tensorfx/webgpu, which adds to torch': ['test/webgpu/absent.test.ts'],
  'calls every public function, setters of the process among them': ['test/mistakes/surplus.test.ts', 'test/fuzz/arguments.test.ts'],
}

/** The row of {@link LONG} whose files have tests by the names that PyTorch's have, which are looked for after every run. */
const PORTED = "has tests of PyTorch's, by their names"
/** The row of the examples that people read and copy. */
const EXAMPLES = 'runs every example of the documentation'
/** The rows of {@link LONG} of which all files run each day. */
const DAILY: readonly string[] = [PORTED, EXAMPLES]
/** Of the other rows, how many days it takes until each file had its turn. */
const TURNS = 5

/** Files that `npm test` leaves to `npm run test:all`, by the reason. Every room has tests beside them. `npm run test:long` takes a fifth of each row, another fifth each day, and all of the daily rows. */
const LONG: Readonly<Record<string, readonly string[]>> = {
  'starts worker threads and programs that load the package': [
    'test/data/loader.test.ts',
    'test/checkpoint/kills.test.ts',
    'test/kernels/threads/{bits,overlap,pool}.test.ts',
    'test/native/threads.test.ts',
    'test/train/livePage.test.ts',
  ],
  'starts worlds of several ranks': [
    'test/distributed/{allScenarios,deaths,drawnCollectives,example,failures,fsdpOptions,history,kills,run}.test.ts',
  ],
  'draws programs, arguments or faults': [
    'test/fuzz/**/*.test.ts',
    'test/memory/{faults,flat,limit,soak,whole}.test.ts',
    'test/trust/fuzz.test.ts',
    'test/debug/{compareBackends,compareGradients,compareResNet,compareSamples,faults,levels,neverTouches,rightBackends,splitCheck,worstInput,worstInputWays}.test.ts',
    'test/debug/flight/faults.test.ts',
  ],
  'has many cases of one path through the code': [
    'test/fx/samples/**/*.test.ts',
    'test/pytorch/**/*.test.ts',
    'test/kernels/schedules/everySchedule.test.ts',
    'test/kernels/c/emitC.test.ts',
    'test/dynamo/{loops,routing}.test.ts',
    'test/inductor/{accuracy,emission,winograd,zeroSizes}.test.ts',
    'test/ops/packedWeights.test.ts',
    'test/examples/families.test.ts',
  ],
  'collects garbage again and again': [
    'test/dynamo/end/weakRefs.test.ts',
    'test/debug/profile/memoryTimeline.test.ts',
    'test/kernels/memory/memoryFigures.test.ts',
  ],
  [EXAMPLES]: ['test/docs/pages.test.ts'],
  [PORTED]: ['test/fx/z3GradualTypes.test.ts', 'test/fx/modules/transformToZ3.test.ts'],
  'trains for hundreds of steps': ['test/optim/autocastLosses.test.ts'],
  'reads programs with the TypeScript compiler': ['test/docs/{changes,flow,program}.test.ts', 'test/house/sizes.test.ts'],
  'starts processes that import the built package, again and again': [
    'test/built/**/*.test.ts',
    'test/cli/{minify,repro,scripts}.test.ts',
    'test/examples/{gptWatch,programs}.test.ts',
    'test/debug/{backends,control,deaths,goldens,guide,histories,hostilePaths,isolate,limits,runRepro,runReproAside,sizes,twoBackends}.test.ts',
    'test/debug/flight/replay.test.ts',
  ],
}

/** The files that take longest, which are started first, in this order. Those that collect garbage again and again come before what fills the memory of their process. */
export const slowest: readonly string[] = [
  'test/docs/pages.test.ts',
  'test/debug/profile/memoryTimeline.test.ts',
  'test/inductor/noRoom.test.ts',
  'test/ops/values.test.ts',
  'test/kernels/emit/emit.test.ts',
  'test/debug/compareBackends.test.ts',
  'test/cli/scripts.test.ts',
  'test/cli/repro.test.ts',
  'test/debug/histories.test.ts',
  'test/built/subpaths.test.ts',
  'test/distributed/run.test.ts',
  'test/distributed/allScenarios.test.ts',
  'test/distributed/failures.test.ts',
  'test/fuzz/compile.test.ts',
  'test/distributed/deaths.test.ts',
  'test/data/loader.test.ts',
  'test/fx/z3GradualTypes.test.ts',
  'test/built/core.test.ts',
  'test/debug/deaths.test.ts',
  'test/debug/hostilePaths.test.ts',
  'test/distributed/fsdpOptions.test.ts',
  'test/built/sideEffects.test.ts',
  'test/built/flow.test.ts',
  'test/debug/twoBackends.test.ts',
  'test/kernels/schedules/everySchedule.test.ts',
  'test/debug/guide.test.ts',
  'test/fx/samples/samples.test.ts',
  'test/dynamo/routing.test.ts',
  'test/checkpoint/kills.test.ts',
  'test/debug/limits.test.ts',
  'test/debug/backends.test.ts',
  'test/built/csp.test.ts',
  'test/built/types.test.ts',
  'test/built/repro.test.ts',
  'test/distributed/kills.test.ts',
  'test/debug/isolate.test.ts',
  'test/distributed/drawnCollectives.test.ts',
  'test/fuzz/operators.test.ts',
  'test/memory/flat.test.ts',
  'test/memory/soak.test.ts',
  'test/memory/faults.test.ts',
]

const root = fileURLToPath(new URL('..', import.meta.url))

/** All test files, from the root. */
export const testFiles = (): readonly string[] =>
  readdirSync(`${root}test`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/${name.replaceAll('\\', '/')}`)

/** Files that replace modules or load them afresh: the files after them would meet two copies of a class. */
const reloading = (): readonly string[] =>
  testFiles().filter((name) => /\bvi\.(?:doMock|mock|resetModules)\(/.test(readFileSync(root + name, 'utf8')))

// `{a,b}`, `*`, and `**` for folders at any depth.
const expression = (glob: string): RegExp => {
  const text = glob.replaceAll('.', '\\.').replaceAll(/\{(.+?)\}/g, (_, names: string) => `(?:${names.replaceAll(',', '|')})`)
  return new RegExp(`^${text.replaceAll(/\*\*\/|\*/g, (stars) => (stars === '*' ? '[^/]*' : '(?:.*/)?'))}$`)
}

/** The files that a table names. */
function listed(table: Readonly<Record<string, readonly string[]>>): readonly string[] {
  const expressions = Object.values(table).flat().map(expression)
  return testFiles().filter((name) => expressions.some((one) => one.test(name)))
}

const alone = new Set([...listed(OWN_PROCESS), ...reloading()])

/** Every how many days a long file has its turn in `npm run test:long`; 1 where all of them run, as they do when files are named. */
export const longTurns = process.env['TENSORFX_LONG_TURNS'] === '1' && !isFull ? TURNS : 1

/** Those of the files of a row whose turn it is. What takes longest is dealt out first, and each row begins elsewhere, so that every day takes about the same time. */
function onTurn(files: readonly string[], row: number): readonly string[] {
  const place = (name: string): number => slowest.indexOf(name) + 1 || slowest.length + 1
  return files.toSorted((a, b) => place(a) - place(b)).filter((_, i) => (i + row + rotation) % longTurns === 0)
}

/** The files that `npm test` leaves out. */
export const long: readonly string[] = listed(LONG)
const longNow = Object.entries(LONG).flatMap(([reason, globs], row) => {
  const files = listed({ [reason]: globs })
  return DAILY.includes(reason) ? files : onTurn(files, row)
})

/** The files of the parts that are not the rest: what `npm test` gives a process of its own, and the long ones that run now, sharing processes and not. */
export const own: readonly string[] = [...alone].filter((name) => !long.includes(name))
export const longShared: readonly string[] = longNow.filter((name) => !alone.has(name))
export const longOwn: readonly string[] = longNow.filter((name) => alone.has(name))
