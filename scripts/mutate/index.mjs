// npm run mutate -- src/room: mutation testing of rooms (or folders, or files). The tests run once for all of them to see which reach what.
//
// Stryker's instrumenter plants every mutant of the room behind a switch. One run of the tests records which tests reach which mutant; then a seeded sample
// of the mutants is switched on, one at a time, and the tests that reach it run until one fails. A mutant that no test kills is printed: the tests would not
// notice that change of the code. Stryker's own runner cannot sample single mutants, and starts a fresh environment for each test file.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Instrumenter } from '@stryker-mutator/instrumenter'
import { runMutants } from './pool.mjs'
import { planShared, planTests } from './plan.mjs'
import { mutantPrinter, printReport } from './report.mjs'
import { runShared } from './shared.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))

const USAGE = `npm run mutate -- PATH... [options]

PATH                 files or folders under src, for example src/nn
--sample N           mutants of each PATH to test; 0: all of them (150)
--seed N             seed of the sample (1)
--line N             only mutants on this line of the one file that PATH names; repeat it for several lines; they are not sampled
--again FILE         only the mutants that survived in the run that wrote FILE with --json
--tests PATH         only tests in this folder or file, for example test/nn, which is faster; repeat it for several; the score is then a lower bound
--threshold PERCENT  exit with code 1 if less than this is killed (0)
--budget SECONDS     of tests for one mutant, those of the room first, then the fastest (15)
--workers N          processes (2)
--json FILE          write the results there
--list               print the mutants of the sample, and test none`

const { values: options, positionals: paths } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: 'string', default: '150' },
    seed: { type: 'string', default: '1' },
    line: { type: 'string', multiple: true, default: [] },
    again: { type: 'string' },
    tests: { type: 'string', multiple: true, default: [] },
    threshold: { type: 'string', default: '0' },
    budget: { type: 'string', default: '15' },
    workers: { type: 'string', default: '2' },
    json: { type: 'string' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (options.help || paths.length === 0) {
  console.log(USAGE)
  process.exit(options.help ? 0 : 2)
}

const number = (name) => {
  const value = Number(options[name])
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} must be a number that is not negative, but is '${options[name]}'`)
  return value
}

/** The TypeScript files of a file or folder, relative to the root. */
function sourcesOf(path) {
  const full = join(root, path)
  const info = statSync(full, { throwIfNoEntry: false })
  if (info === undefined) throw new Error(`There is no '${path}'. Give files or folders under src, for example src/nn.`)
  if (info.isFile()) return [relative(root, full)]
  return readdirSync(full, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => relative(root, join(full, name)))
}

for (const path of options.tests) {
  if (!existsSync(join(root, path))) throw new Error(`There is no '${path}'. Give --tests a folder or file of tests, for example test/nn.`)
}

/** Numbers in [0, 1) from a seed (mulberry32). */
function generator(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** `count` of the items, drawn without replacement, in their order. */
function sample(items, count, seed) {
  const random = generator(seed)
  const order = items.map((_, i) => i)
  for (let i = 0; i < Math.min(count, order.length); i++) {
    const j = i + Math.floor(random() * (order.length - i))
    ;[order[i], order[j]] = [order[j], order[i]]
  }
  return order
    .slice(0, count)
    .sort((a, b) => a - b)
    .map((i) => items[i])
}

async function instrument(files) {
  const silent = () => {}
  const logger = { debug: silent, info: silent, warn: silent, error: console.error, isDebugEnabled: () => false }
  const sources = files.map((name) => ({ name: join(root, name), content: readFileSync(join(root, name), 'utf8'), mutate: true }))
  return new Instrumenter(logger).instrument(sources, { plugins: null, ignorers: [], excludedMutations: [] })
}

/** A mutant by its place and text; its number is another when the code around it has changed. */
const nameOf = ({ fileName, location: { start, end }, replacement }) =>
  [relative(root, fileName), start.line, start.column, end.line, end.column, replacement].join(' ')

const survivorsOf = (path) =>
  new Set(
    JSON.parse(readFileSync(path, 'utf8'))
      .mutants.filter(({ status }) => status === 'survived' || status === 'unreached')
      .map((mutant) => nameOf({ ...mutant, fileName: join(root, mutant.fileName) })),
  )

/** The files of each path; one that two paths name belongs to the first. */
const filesOf = new Map()
const files = []
for (const path of paths) {
  const own = sourcesOf(path).filter((file) => !files.includes(file))
  filesOf.set(path, own)
  files.push(...own)
}
files.sort()
// The tests on a GPU, or on a driver that computes on the CPU, are those of the rooms that compute there.
const SOFTWARE = '/usr/lib/chromium/vk_swiftshader_icd.json'
if (files.some((file) => /^src\/(gpu|kernels\/wgsl|inductor\/webgpu)\//.test(file))) {
  process.env.TENSORFX_MUTATE_GPU = '1'
  if (process.env.VK_ICD_FILENAMES === undefined && existsSync(SOFTWARE)) process.env.VK_ICD_FILENAMES = SOFTWARE
}
/** The mutants in the files of a path. */
const mutantsIn = (path, all) => all.filter(({ fileName }) => filesOf.get(path).includes(relative(root, fileName)))
const started = Date.now()
const seconds = () => ((Date.now() - started) / 1000).toFixed(0)
const { files: instrumented, mutants } = await instrument(files)
const lines = new Set(options.line.map(Number))
const count = number('sample')
const seed = number('seed')
const survivors = options.again === undefined ? null : survivorsOf(options.again)
const isNamed = (m) => (survivors === null ? lines.has(m.location.start.line + 1) : survivors.has(nameOf(m)))
const named = lines.size > 0 || survivors !== null
const chosen = named
  ? mutants.filter(isNamed)
  : paths.flatMap((path) => (count === 0 ? mutantsIn(path, mutants) : sample(mutantsIn(path, mutants), count, seed)))
console.log(`${paths.join(' ')}: ${chosen.length} of ${mutants.length} mutants in ${files.length} files, seed ${seed}`)
if (options.list) {
  const print = mutantPrinter(root)
  for (const mutant of chosen) print(mutant)
  process.exit()
}

const work = mkdtempSync(join(tmpdir(), 'tensorfx-mutate-'))
try {
  writeFileSync(join(work, 'sources.json'), JSON.stringify(Object.fromEntries(instrumented.map((f) => [f.name, f.content]))))
  // Which tests reach which mutants. A process of its own, since the tests leave much behind.
  execFileSync(process.execPath, [fileURLToPath(new URL('coverage.mjs', import.meta.url)), work, JSON.stringify(options.tests), ...files], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const coverage = JSON.parse(readFileSync(join(work, 'coverage.json'), 'utf8'))
  console.log(`${coverage.reached} tests reach the code (${seconds()} s)`)

  const plans = chosen.map((mutant) => planTests(mutant, coverage, relative(root, mutant.fileName), number('budget')))
  const how = { work, workers: Math.max(1, number('workers')) }
  const found = await runShared(
    chosen.map((mutant) => planShared(mutant, coverage, relative(root, mutant.fileName))),
    coverage,
    how,
  )
  console.log(`${found.size} found in shared processes (${seconds()} s)`)
  const rest = await runMutants(
    plans.filter(({ id }) => !found.has(id)),
    how,
  )
  const results = plans.map(({ id }) => found.get(id) ?? rest.shift())
  const tested = chosen.map((mutant, i) => ({ mutant, plan: plans[i], result: results[i] }))
  const scores = paths.map((path) =>
    printReport(
      root,
      path,
      tested.filter(({ mutant }) => mutantsIn(path, [mutant]).length > 0),
    ),
  )
  console.log(`seed ${seed}, ${seconds()} s`)
  if (options.json !== undefined) {
    const entries = chosen.map((m, i) => ({ ...m, fileName: relative(root, m.fileName), ...results[i] }))
    writeFileSync(options.json, `${JSON.stringify({ paths, seed, scores, mutants: entries }, null, 1)}\n`)
  }
  if (scores.some((score) => score < number('threshold'))) {
    console.log(`A score is below the threshold of ${options.threshold}%.`)
    process.exitCode = 1
  }
} finally {
  rmSync(work, { recursive: true, force: true })
}
