// Backends that are right and round otherwise, drawn over models: nothing is said against them. A tenth of the 100 in the suite; TENSORFX_RIGHT=100 draws all.
import { describe, expect, it } from 'vitest'
import { compareBackends, sameTwoModels, setLogSink } from 'tensorfx/debug'
import { Node, wrap } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { Tensor, noGrad, torch } from 'tensorfx'
import { drawRight } from '../../scripts/faults/alarms.mjs'
import { runProgram } from '../../scripts/faults/models.mjs'
import { VARIANT_NAMES, rightBackend } from '../../scripts/faults/right.mjs'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { runnable } from '../../src/dynamo/index.ts'
import type { Backend } from '../../src/dynamo/index.ts'
import { opOf } from '../../src/ops/index.ts'
import { isolatedInputs } from '../../src/debug/runs/isolated.ts'
import { randomGraph, randomInputs } from './faultyBackends.ts'
import { api } from './faultApi.ts'

const count = Number(process.env['TENSORFX_RIGHT'] ?? 10)

/** The name of the operator that a node calls. */
const operatorOf = ({ op, target }: Node): string => (op === 'call_function' ? (opOf(target)?.qualname ?? '') : '')

/** Other ways to compute a softmax of floats, which round differently. */
const SOFTMAXES: Readonly<Record<string, (x: Tensor, dim: number) => Tensor>> = {
  'of logarithms': (x, dim) => torch.exp(torch.sub(x, torch.logsumexp(x, dim, { keepdim: true }))),
  'of halves': (x, dim) => {
    const terms = torch.exp(torch.sub(x, torch.amax(x, dim, true)))
    const half = (terms.shape.at(dim) ?? 0) >> 1
    const rest = (terms.shape.at(dim) ?? 0) - half
    return torch.div(terms, torch.add(torch.sum(terms.narrow(dim, 0, half), dim, true), torch.sum(terms.narrow(dim, half, rest), dim, true)))
  },
  'in float64': (x, dim) => torch.softmax(x.to('float64'), dim).to(x.dtype),
}

const asFunctions = new Map(
  Object.entries(SOFTMAXES).map(([name, softmax], i) => {
    // Half precision has too few digits for a detour, and infinities are subtracted from each other on one only.
    const other = (x: Tensor, dim: number): Tensor => (x.dtype === 'float16' || !x.isfinite().all().item() ? torch.softmax(x, dim) : softmax(x, dim))
    return [name, wrap(other, { name: `softmax${i}` })]
  }),
)

/** (x + y) + last as x + (y + last), in single and double precision. */
const reassociated = wrap(
  (sum: Tensor, x: Tensor, y: Tensor, last: Tensor) => {
    const isFine = [x, y, last].every((value) => value instanceof Tensor && value.dtype === sum.dtype && ['float32', 'float64'].includes(value.dtype))
    return isFine ? torch.add(x, torch.add(y, last)) : torch.add(sum, last)
  },
  { name: 'reassociated' },
)

/** Replaces softmaxes, and sums of three by the other order of additions. The graph is changed in place. */
function rewritten(gm: GraphModule, softmax: string | null, reassociates: boolean): GraphModule {
  const other = softmax === null ? undefined : asFunctions.get(softmax)
  for (const node of [...gm.graph.nodes]) {
    const name = operatorOf(node)
    const [a, b] = node.args
    if (other !== undefined && /(^|\.)softmax$/.test(name) && typeof b === 'number' && Object.keys(node.kwargs).length === 0) node.target = other
    if (!reassociates || name !== 'torch.add' || !(a instanceof Node) || operatorOf(a) !== 'torch.add' || !(b instanceof Node)) continue
    if (a.args.length !== 2 || node.args.length !== 2 || Object.keys(node.kwargs).length + Object.keys(a.kwargs).length > 0) continue
    node.target = reassociated
    node.args = [a, ...a.args, b]
  }
  gm.recompile()
  return gm
}

/** A right backend that no other seed need have. */
function drawnBackend(seed: number, possible = VARIANT_NAMES): { readonly text: string; readonly backend: Backend } {
  const random = randomFrom(7000 + seed)
  const names = possible.filter(() => random.chance(0.4))
  const softmax = random.chance(0.5) ? random.pick(Object.keys(SOFTMAXES)) : null
  const reassociates = random.chance(0.5)
  const variants = names.length === 0 && softmax === null && !reassociates ? ['reversed'] : names
  const backend: Backend = (gm, inputs) => rightBackend(api, variants)(rewritten(gm.deepCopy(), softmax, reassociates), inputs)
  const text = [...variants, ...(softmax === null ? [] : [`softmax ${softmax}`]), ...(reassociates ? ['reassociated'] : [])].join(', ')
  return { text, backend: Object.defineProperty(backend, 'name', { value: 'right' }) }
}

/** A graph of a model that this seed draws, with its inputs. */
function drawnGraph(seed: number): { readonly text: string; readonly gm: GraphModule; readonly inputs: readonly unknown[] } {
  const { program } = drawRight(seed)
  const graphs: { gm: GraphModule; inputs: readonly unknown[] }[] = []
  const keep: Backend = (gm) => {
    const original = gm.deepCopy()
    delete original.meta['writeBacks']
    return (...inputs: readonly unknown[]) => {
      graphs.push({ gm: original, inputs: isolatedInputs(inputs) })
      return gm.forward(...inputs)
    }
  }
  runProgram(api, { ...program, calls: 1 }, keep)
  const { gm, inputs } = randomFrom(seed).pick(graphs)
  return { text: `${program.model}, ${program.mode}, ${program.dtype}, ${gm.className}`, gm, inputs }
}

/** What is said of them; null if nothing is. */
async function alarmOf(seed: number, withFault: (backend: Backend) => Backend = (backend) => backend): Promise<string | null> {
  const drawn = drawnBackend(seed)
  const backend = withFault(drawn.backend)
  const { text, gm, inputs } = drawnGraph(seed)
  const result = await compareBackends(gm, inputs, { backends: [backend] })
  if (result.first !== null) return `compareBackends, seed ${seed}, ${drawn.text}, on ${text}:\n${String(result)}`
  const said: string[] = []
  setLogSink((level, message) => void said.push(`${level}: ${message}`))
  try {
    const compiled = backend(gm.deepCopy(), inputs)
    if (!sameTwoModels(gm, runnable(compiled), inputs.map(detached), { onlyFwd: true }))
      return `sameTwoModels, seed ${seed}, ${drawn.text}, on ${text}:\n${said.join('\n')}`
  } finally {
    setLogSink(null)
  }
  return null
}

const detached = (value: unknown): unknown => (value instanceof Tensor ? noGrad(() => value.detach()) : value)

/** The same for a random program: its gradients and its worst input too. */
async function alarmOfProgram(seed: number, withFault: (backend: Backend) => Backend = (backend) => backend): Promise<string | null> {
  // A sigmoid of infinity is 1 for every backend, and not a unit more.
  const drawn = drawnBackend(
    seed,
    VARIANT_NAMES.filter((name) => name !== 'nudged'),
  )
  const backend = withFault(drawn.backend)
  const gm = randomGraph(seed)
  const inputs = randomInputs(seed).map((input) => input.requiresGrad_(true))
  const result = await compareBackends(gm, inputs, { backends: [backend], gradients: true, worstInput: { tries: 8, seed } })
  if (result.first !== null) return `compareBackends, seed ${seed}, ${drawn.text}:\n${String(gm.code)}\n${String(result)}`
  return sameTwoModels(gm, runnable(backend(gm.deepCopy(), inputs)), inputs)
    ? null
    : `sameTwoModels, seed ${seed}, ${drawn.text}:\n${String(gm.code)}`
}

const seeds = Array.from({ length: count }, (_, i) => i + 1)

describe('a right backend that rounds otherwise', () => {
  it.each(seeds)('is right on the model of seed %d', async (seed) => expect((await alarmOf(seed)) ?? '').toBe(''))
  it.each(seeds)('is right on the random program of seed %d, its gradients and its worst input', async (seed) =>
    expect((await alarmOfProgram(seed)) ?? '').toBe(''),
  )

  it('would be found if it were wrong by one part in a thousand', async () => {
    const wrong =
      (backend: Backend): Backend =>
      (gm, inputs) => {
        const run = runnable(backend(gm, inputs))
        const off = (value: unknown): unknown =>
          value instanceof Tensor && value.dtype.startsWith('float') ? value.mul(1.01) : Array.isArray(value) ? value.map(off) : value
        return (...values: readonly unknown[]) => off(run(...values))
      }
    expect(await alarmOf(1, wrong)).toMatch(/^compareBackends/)
    expect(await alarmOfProgram(1, wrong)).toMatch(/^compareBackends/)
  })
})
