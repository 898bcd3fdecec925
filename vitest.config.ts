// Tests import the package by its public names, and internals by their path in src (`../../src/kernels/ir/loopIr.ts`). They run on the sources; with
// TENSORFX_TEST_BUILT=1 both kinds of import lead to dist/, never one to each: a class must not exist twice.
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { withoutTypes } from './scripts/docs/examples.mjs'
import { generate as generateOps } from './scripts/generateOps.mjs'
import { generate as generatePasses } from './scripts/generatePasses.mjs'
import { generate as generateViewer } from './scripts/generateViewer.mjs'
import { ClosingReporter } from './test/helpers/closingReporter.ts'
import { Order } from './test/helpers/order.ts'
import { PortedReporter } from './test/helpers/portedReporter.ts'
import { isChosen, rotation, turn } from './test/helpers/rotation.ts'
import { long, longOwn, longShared, longTurns, own, testFiles } from './test/suites.ts'

generateOps()
generatePasses()
generateViewer()

const built = process.env.TENSORFX_TEST_BUILT === '1'
const checksHeap = process.env.TENSORFX_CHECK_HEAP === '1'
const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const file = (name: string): string => at(built ? `dist/${name}.js` : `src/${name}.ts`)
const internals = built ? [{ find: /^(?:\.\.\/)+src\/(.+)\.ts$/, replacement: file('$1') }] : []

/** What says nothing new of the built package: tests that start processes on dist/ anyway, or look at the text of the sources. */
const SAME_ON_BOTH = ['test/distributed/**', 'test/examples/**', 'test/fx/viewer/page/**', 'test/house/**', 'test/lint-rules/**']
/** What takes long and runs on the plain heap too: one of them each day on the checked heap. */
const ON_BOTH_HEAPS = ['faults', 'soak', 'whole'].map((name) => `test/memory/${name}.test.ts`)
/** What counts bytes: the checked heap has margins, and keeps freed memory for a while. */
const COUNTS_BYTES = ['test/memory/{flat,limit}.test.ts']
/** The built package is the same code, so a tenth of the files runs on it, another one each day. */
const otherDays = (): readonly string[] => testFiles().filter((name) => !isChosen(name))
const excluded = [
  ...(built ? [...SAME_ON_BOTH, ...otherDays()] : []),
  ...(checksHeap ? [...COUNTS_BYTES, ...ON_BOTH_HEAPS.filter((name) => !turn(ON_BOTH_HEAPS).includes(name))] : []),
]

/** Files of examples of the documentation, which test/docs/snippets.ts writes. */
const EXAMPLES = /tensorfx-docs-\w+\/\d+\/example\.ts$/

/** How sources become modules. */
const modules = {
  // Examples run as in Node 22, which replaces types by spaces. esbuild renames variables, and captured graphs would show the new names.
  esbuild: { exclude: [/\.js$/, EXAMPLES] },
  plugins: [
    {
      name: 'strip-types-of-examples',
      transform: (code: string, id: string) => (EXAMPLES.test(id) ? { code: withoutTypes(code), map: null } : null),
    },
  ],
  resolve: {
    alias: [{ find: /^tensorfx$/, replacement: file('index') }, { find: /^tensorfx\/(.+)$/, replacement: file('entries/$1') }, ...internals],
  },
}

/** How the files of every part run. */
const running = {
  // What hangs is found, and what takes a second on a machine of its own has time enough on one that is busy.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  pool: 'forks' as const,
  // Passes and the stages of compilations are verified. Test files run side by side, each on one thread unless it is about threads.
  env: { TENSORFX_VERIFY: '1', TENSORFX_ROTATION: String(rotation), TENSORFX_NUM_THREADS: process.env.TENSORFX_NUM_THREADS ?? '1' },
  // TENSORFX_CHECK_HEAP=1: the checked heap, see test/helpers/checkedHeap.ts.
  setupFiles: checksHeap ? ['test/helpers/checkedHeap.ts'] : [],
}

/** The files of src/ and dist/, wherever the checkout is: its path may have a folder `src`, too. */
const OF_PACKAGE = new RegExp(
  `^${at('.')
    .replaceAll('\\', '/')
    .replace(/[$()*+.?[\]^{|}]/g, '\\$&')}(?:src|dist)/.*\\.[jt]s$`,
)

/**
 * Files that share processes: one file runs after another in each, and must leave everything as it was. Node loads the package itself, since it
 * takes a sixth of the time more through Vite's module runner. Files that replace modules of the package have processes of their own, where Vite loads all.
 */
const sharing = {
  isolate: false,
  // Most of what is allocated lives for one test: a larger young generation is collected less often.
  execArgv: ['--max-semi-space-size=64'],
  server: { deps: { external: [OF_PACKAGE] } },
  setupFiles: ['test/helpers/sources.ts', 'test/helpers/stacks.ts', ...running.setupFiles, 'test/helpers/leftBehind.ts'],
}
/**
 * How long files run: after the others, and as most of them wait for processes that they started, twice as many as there are cores. Each of those processes takes its share of the
 * machine, so that a test has time enough when that is a tenth.
 */
const later = {
  maxWorkers: 2 * availableParallelism(),
  sequence: { groupOrder: 1 },
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // A file that runs every third day counts these days, or it would always take the same one of three variants.
  env: { ...running.env, TENSORFX_ROTATION: String(Math.floor(rotation / longTurns)) },
}

/**
 * The parts of the suite: what `npm test` runs and what it leaves to `npm run test:all`, each in processes that files share, and in a process for each file that needs one. None
 * of them `extends` the configuration: that would evaluate this file, which writes what is generated, once more for each.
 */
const projects = [
  { name: 'shared', include: ['test/**/*.test.ts'], exclude: [...excluded, ...own, ...long], ...sharing },
  { name: 'own', include: [...own], exclude: excluded },
  { name: 'long', include: [...longShared], exclude: excluded, ...sharing, ...later },
  { name: 'longOwn', include: [...longOwn], exclude: excluded, ...later },
  // `npm run test:webgpu`: one card, so that one file runs after the other.
  { name: 'webgpu', include: ['test/webgpu/device/*.device.ts'], ...later, maxWorkers: 1, sequence: { groupOrder: 2 } },
].map((test) => ({ ...modules, test: { ...running, ...test } }))

export default defineConfig({
  ...modules,
  test: {
    ...running,
    sequence: { sequencer: Order, setupFiles: 'list' },
    // The mutants of `npm run mutate` run in processes that it starts itself.
    ...(process.env.TENSORFX_MUTATE === undefined
      ? { projects }
      : { include: ['test/**/*.test.ts', ...(process.env.TENSORFX_MUTATE_GPU === '1' ? ['test/webgpu/device/*.device.ts'] : [])] }),
    // Transformed modules are kept in node_modules, by their contents: a file of tests starts in half the time. `npx vitest --clearCache` empties the folder.
    experimental: { fsModuleCache: true },
    // All cores: by default vitest leaves one idle, which is half of two.
    maxWorkers: '100%',
    // Which of PyTorch's tests are here is read from the suite on the sources.
    reporters: ['default', ...(built || checksHeap ? [] : [new PortedReporter()]), new ClosingReporter()],
  },
})
