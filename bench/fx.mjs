// npm run bench:fx: the cost of graph operations on chains of torch.add and torch.relu, next to PyTorch's times (bench/data/pytorch-fx.json), and how it grows.
// With --large also a million nodes.
import './oneThread.mjs'
import { readFile } from 'node:fs/promises'
import { fx, torch } from 'tensorfx'
import { ShapeProp } from 'tensorfx/fx/passes'

const pytorch = JSON.parse(await readFile(new URL('data/pytorch-fx.json', import.meta.url), 'utf8')).rows
const input = torch.ones([4])

/** A program of n operators. */
const chain = (n) => (x) => {
  for (let i = 0; i < n; i += 2) x = torch.relu(torch.add(x, 1))
  return x
}

function build(n) {
  const graph = new fx.Graph()
  let x = graph.placeholder('x')
  for (let i = 0; i < n; i += 2) x = graph.callFunction(torch.relu, [graph.callFunction(torch.add, [x, 1])])
  graph.output(x)
  return graph
}

/** A graph with n operators whose results are not used. */
function dead(n) {
  const graph = build(n)
  const output = graph.outputNode()
  output.args = [graph.nodes[Symbol.iterator]().next().value]
  return graph
}

/** Large graphs: the garbage of one round must not be collected in the next. (For small ones a collection would only empty the caches.) */
let large = false
const collect = () => large && globalThis.gc?.()

/** The fastest of some runs in milliseconds; `make` prepares each outside of the timing. */
function time(make, run, rounds) {
  let best = Infinity
  for (let i = 0; i < rounds; i++) {
    const value = make()
    collect()
    const start = performance.now()
    run(value)
    best = Math.min(best, performance.now() - start)
  }
  return best
}

/** The same, less a second call of the module: compilation waits for the first call, and what that takes longer belongs to it. */
function timeToCompile(make, run, rounds) {
  const [first, second] = [[], []]
  for (let i = 0; i < rounds; i++) {
    const module = make()
    collect()
    const start = performance.now()
    run(module)
    module.call(input)
    const middle = performance.now()
    module.call(input)
    second.push(performance.now() - middle)
    first.push(middle - start)
  }
  return Math.min(...first) - Math.min(...second)
}

/** A tracer that records no stacks, as PyTorch's does unless told otherwise. */
class WithoutStacks extends fx.Tracer {
  recordStackTraces = false
}

/** Name, target ratio (PyTorch's time by ours), and the time for n nodes. */
const rows = (n, rounds) => {
  // Without stacks, which a graph of a million nodes has no room for in an ordinary heap.
  const gm = new fx.GraphModule({}, new WithoutStacks().trace(chain(n)))
  const fresh = () => new fx.GraphModule({}, build(n))
  const same = () => gm
  const run = time(same, () => gm.call(input), rounds)
  return [
    [
      'symbolic_trace',
      10,
      () =>
        time(
          () => chain(n),
          (f) => new fx.GraphModule({}, new WithoutStacks().trace(f)).code,
          rounds,
        ),
    ],
    [
      'symbolic_trace, with stacks',
      null,
      () =>
        time(
          () => chain(n),
          (f) => fx.symbolicTrace(f).code,
          rounds,
        ),
    ],
    [
      'Tracer.trace only',
      10,
      () =>
        time(
          () => chain(n),
          (f) => new WithoutStacks().trace(f),
          rounds,
        ),
    ],
    [
      'Tracer.trace only, with stacks',
      null,
      () =>
        time(
          () => chain(n),
          (f) => new fx.Tracer().trace(f),
          rounds,
        ),
    ],
    ['recompile', 10, () => timeToCompile(fresh, (m) => m.recompile(), rounds)],
    ['python_code', 3, () => time(same, () => gm.graph.generateCode(), rounds)],
    ['lint', 3, () => time(same, () => gm.graph.lint(), rounds)],
    ['deepcopy graph', 10, () => time(same, () => gm.graph.deepCopy(), rounds)],
    ['deepcopy gm', 10, () => time(same, () => gm.deepCopy().code, rounds)],
    ['str(graph)', 3, () => time(same, () => String(gm.graph), rounds)],
    ['eliminate_dead_code (nothing dead)', 3, () => time(same, () => gm.graph.eliminateDeadCode(), rounds)],
    [
      'eliminate_dead_code (all dead)',
      3,
      () =>
        time(
          () => dead(n),
          (g) => g.eliminateDeadCode(),
          rounds,
        ),
    ],
    [
      `replace_pattern (${n / 2} matches)`,
      10,
      () =>
        time(
          fresh,
          (m) =>
            fx.replacePattern(
              m,
              (x) => torch.relu(torch.add(x, 1)),
              (x) => torch.sigmoid(x),
            ),
          rounds,
        ),
    ],
    ['run compiled code', 3, () => run],
    [
      'eager function',
      null,
      () =>
        time(
          () => chain(n),
          (f) => f(input),
          rounds,
        ),
    ],
    ['Interpreter.run', 3, () => time(same, () => new fx.Interpreter(gm).run(input), rounds)],
    ['ShapeProp', 3, () => time(same, () => new ShapeProp(gm).propagate(input), rounds)],
    ['Graph build via call_function', 10, () => time(() => n, build, rounds)],
    [
      'replace add->mul + recompile',
      10,
      () =>
        timeToCompile(
          fresh,
          (m) => {
            for (const node of m.graph.findNodes({ op: 'call_function', target: torch.add })) node.target = torch.mul
            m.recompile()
          },
          rounds,
        ),
    ],
  ]
}

const sizes = process.argv.includes('--large') ? [1000, 10_000, 100_000, 1_000_000] : [1000, 10_000, 100_000]
const times = new Map()
// The engine compiles what it will run.
for (const [, , measure] of torch.noGrad(() => rows(1000, 30))) torch.noGrad(measure)
for (const n of sizes) {
  const rounds = n <= 1000 ? 40 : n <= 10_000 ? 20 : n <= 100_000 ? 3 : 1
  large = n >= 100_000
  torch.noGrad(() => {
    for (const [name, target, measure] of rows(n, rounds)) {
      if (n > 100_000 && name.endsWith('with stacks')) continue
      const key = name.replace(/\d+ matches/, 'half as many matches')
      if (!times.has(key)) times.set(key, { target, ms: [] })
      times.get(key).ms.push([n, measure(), pytorch[`chain${n} ${name.replace(', with stacks', '')}`]])
    }
  })
}

const shown = (ms) => (ms < 1 ? `${(ms * 1000).toFixed(0)} us` : `${ms.toFixed(1)} ms`).padStart(10)
console.log(`${''.padEnd(44)}${sizes.map((n) => `${n} nodes`.padStart(30)).join('')}`)
let missed = 0
for (const [name, { target, ms }] of times) {
  const cells = ms.map(([, mine, theirs], i) => {
    const growth = i === 0 ? '' : ` x${(mine / ms[i - 1][1]).toFixed(1)}`
    if (theirs === undefined) return `${shown(mine)}${growth}`.padStart(30)
    const ratio = theirs / mine
    const verdict = target === null ? '' : ratio >= target ? ' meets' : ' MISSES'
    if (verdict === ' MISSES') missed++
    return `${shown(mine)}${growth} ${ratio.toFixed(1)}x${verdict}`.padStart(30)
  })
  console.log(`${`${name}${target === null ? '' : ` (${target}x)`}`.padEnd(44)}${cells.join('')}`)
}
console.log(
  `\nRatios are PyTorch's time by ours; "x10" is the growth from the column before (at most x12 wanted). ${missed === 0 ? 'All targets are met.' : `${missed} targets are missed.`}`,
)
