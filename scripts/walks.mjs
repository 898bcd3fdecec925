// npm run walks: records the calls of the programs in scripts/walks, from which the site draws a page each: docs/flows/NAME.flow.json. The text by hand beside them, NAME.prose.md, is tied to
// the functions by hashes of their tokens: a test says which have changed, and `npx tensorfx flow --accept` that the text was read again.
//
//   npm run walks                  records all of them
//   npm run walks -- relu          one
import '../bench/oneThread.mjs'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { observe } from '../dist/docs/flow/observe.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = `${root}docs/flows/`
/** What the walks do not follow: helpers that everything calls. */
const HELPERS = ['errors', 'pytree', 'protocol', 'provenance']

/**
 * The walks: the function that each begins with, the program that is recorded, the rooms that are left out, and the functions that are always drawn. `without`: a program whose calls are taken away,
 * since the second call of a compiled function comes after a first one.
 */
const walks = [
  { name: 'symbolicTrace', from: 'src/fx/trace/symbolicTrace.ts#symbolicTrace', run: 'symbolicTrace.mjs', skip: ['ops', 'dispatch'] },
  { name: 'eager-relu', from: 'src/dispatch/dispatch.ts#dispatch', run: 'relu.mjs' },
  {
    name: 'compile-first-call',
    from: 'src/dynamo/call/compiledFunction.ts#CompiledFunction.call',
    run: 'compile.mjs 1',
    skip: ['tensor', 'kernels', 'ops', 'fx'],
  },
  {
    ...{
      name: 'compile-second-call',
      from: 'src/dynamo/call/compiledFunction.ts#CompiledFunction.call',
      run: 'compile.mjs 2',
      without: 'compile.mjs 1',
    },
    skip: ['fx'],
  },
  { name: 'backward', from: 'src/autograd/engine.ts#backward', run: 'backward.mjs', skip: ['kernels'] },
  {
    name: 'failure-to-launcher',
    from: 'src/debug/repro/wrappers.ts#watchGraph',
    run: 'failure.mjs',
    skip: ['kernels', 'tensor', 'ops', 'dispatch', 'inductor'],
  },
  {
    name: 'launcher-to-repro',
    from: 'src/debug/minify/minifyFailure.ts#minifyBackendFailure',
    run: 'failure.mjs',
    skip: ['kernels', 'tensor', 'ops', 'dispatch'],
  },
  {
    name: 'two-models',
    from: 'src/debug/judge/twoModels.ts#sameTwoModels',
    run: 'failure.mjs',
    skip: ['kernels', 'tensor', 'ops', 'dispatch', 'autograd', 'fx'],
  },
  {
    name: 'fsdp-forward',
    from: 'src/distributed/fsdp/fsdp.ts#FullyShardedDataParallel.forward',
    run: 'fsdp.mjs',
    skip: ['kernels', 'ops', 'dispatch', 'tensor', 'module'],
  },
  { name: 'fsdp-units', from: 'src/distributed/fsdp/debugUtils.ts#describeUnits', run: 'fsdp.mjs', skip: ['kernels', 'ops', 'dispatch', 'tensor'] },
  { name: 'loadStateDict', from: 'src/module/module.ts#Module.loadStateDict', run: 'loadStateDict.mjs', skip: ['kernels', 'ops', 'dispatch'] },
  { name: 'operator-to-webassembly', from: 'src/ops/eager/pointwise.ts#launchPointwise', run: 'kernel.mjs' },
]

const commandOf = (run) => `node scripts/walks/${run}`
const keyOf = ({ from, to, kind }) => JSON.stringify([from, to, kind])
/** Each program runs once. */
const known = new Map()
function observed(run) {
  if (!known.has(run)) known.set(run, observe(root, commandOf(run)))
  return known.get(run)
}

/** Whether a function is in one of the rooms. */
const isIn = (id, rooms) => rooms.some((room) => `/${id.slice(0, id.lastIndexOf('#'))}`.includes(`/${room}/`))

/** The calls that are reached from a function. */
function reachedFrom(from, edges) {
  const next = groupBy(edges)
  const reached = new Set([from])
  for (const id of reached) for (const { to } of next.get(id) ?? []) reached.add(to)
  return edges.filter((edge) => reached.has(edge.from))
}

function groupBy(edges) {
  const groups = new Map()
  for (const edge of edges) groups.set(edge.from, [...(groups.get(edge.from) ?? []), edge])
  return groups
}

/** A walk as the site reads it. Its pages are drawn from the sources as they are, so it has no cards that could go stale. */
function record({ name, from, run, without, stop = [], skip = [], pin = [] }) {
  const before = new Map(without === undefined ? [] : observed(without).map((edge) => [keyOf(edge), edge.count]))
  const edges = observed(run)
    .map((edge) => ({ ...edge, count: edge.count - (before.get(keyOf(edge)) ?? 0) }))
    .filter(({ count }) => count > 0)
  const left = [...HELPERS, ...skip]
  const kept = reachedFrom(
    from,
    edges.filter(({ from: caller, to }) => !isIn(caller, left) && !isIn(to, left)),
  )
  const calls = edges.filter(({ to }) => to === from).reduce((sum, { count }) => sum + count, 0)
  if (calls === 0) throw new Error(`${commandOf(run)} does not call ${from}: the walk ${name} has nothing to show.`)
  const options = { depth: 12, nodes: 22, stop, skip: left, pin }
  // A line for each call: differences can be read.
  const lines = [{ from: '', to: from, kind: 'call', count: calls }, ...kept.filter(({ to }) => to !== from)].map((edge) => JSON.stringify(edge))
  const head = JSON.stringify({ schema: 1, root: from, options, command: commandOf(run) }).slice(0, -1)
  writeFileSync(`${folder}${name}.flow.json`, `${head},"cards":[],"observed":[\n${lines.join(',\n')}\n]}\n`)
  console.log(`${name}: ${lines.length} calls`)
}

const chosen = process.argv.slice(2)
mkdirSync(folder, { recursive: true })
if (chosen.length === 0)
  for (const file of readdirSync(folder))
    if (file.endsWith('.flow.json') && !walks.some(({ name }) => file === `${name}.flow.json`)) rmSync(folder + file)
for (const walk of walks) if (chosen.length === 0 || chosen.includes(walk.name)) record(walk)
