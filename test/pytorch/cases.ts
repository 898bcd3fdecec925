// Runs the goldens of operators and layers: outputs, gradients and second gradients, eager or compiled. A case passes, or throws.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { compile, torch } from 'tensorfx'
import { Tensor } from 'tensorfx'
import { deterministic } from '../ops/goldens.ts'
import { camelCase, evaluate } from './python.ts'

export interface StoredTensor {
  readonly shape: readonly number[]
  readonly dtype: string
  readonly data: readonly (number | string | boolean)[]
}
type StoredTensors = Readonly<Record<string, StoredTensor>>

/** One call of PyTorch. */
export interface GoldenCase {
  readonly name: string
  readonly op?: string
  readonly source: string | Readonly<Record<string, unknown>>
  readonly call?: string
  readonly note?: string
  readonly module?: string
  readonly params?: StoredTensors
  readonly inputs: StoredTensors
  readonly outputs: readonly StoredTensor[]
  readonly grads?: Readonly<Record<string, StoredTensor | null>>
  readonly grads2?: Readonly<Record<string, StoredTensor | null>>
  readonly param_grads?: Readonly<Record<string, StoredTensor | null>>
  readonly tol?: number
  readonly grad_tol?: number
  readonly optimizer?: string
  readonly trajectory?: readonly (readonly number[])[]
  readonly lrs?: readonly (readonly number[])[]
  readonly momentums?: readonly (readonly number[])[]
  readonly metrics?: readonly number[]
}

/** The cases of a file of test/goldens. */
export function readCases(file: string): readonly GoldenCase[] {
  const { cases } = JSON.parse(readFileSync(fileURLToPath(new URL(`../goldens/${file}`, import.meta.url)), 'utf8')) as {
    readonly cases: readonly GoldenCase[]
  }
  return cases
}

const toNumber = (v: number | string | boolean): number => (v === 'nan' ? NaN : v === 'inf' ? Infinity : v === '-inf' ? -Infinity : Number(v))

export function fromStored({ shape, dtype, data }: StoredTensor): Tensor {
  const values = data.map(toNumber)
  // The goldens of special values write -0 as 0.0.
  if (data.slice(0, 5).join() === 'nan,inf,-inf,0,0') values[4] = -0
  return torch.tensor(values, { dtype: dtype as 'float32' }).view(shape)
}

const flat = (t: Tensor): number[] => Array.from(t.detach().contiguous().toTypedArray() as ArrayLike<number | bigint>, Number)

function expectClose(actual: Tensor, stored: StoredTensor, what: string, tolerance: number): void {
  const [got, want] = [`${actual.dtype} [${actual.shape.join()}]`, `${stored.dtype} [${stored.shape.join()}]`]
  if (got !== want) throw new Error(`${what}: ${got} instead of ${want}`)
  const values = flat(actual)
  const worst = Math.max(0, ...stored.data.map(toNumber).filter(Number.isFinite).map(Math.abs))
  stored.data.forEach((v, i) => {
    const expected = toNumber(v)
    const value = values[i] ?? NaN
    const close = Number.isFinite(expected)
      ? Math.abs(value - expected) <= tolerance * (1 + Math.abs(expected)) || Math.abs(value - expected) <= 1e-6 * worst
      : Object.is(value, expected)
    if (!close) throw new Error(`${what}[${i}]: ${value} instead of ${expected}`)
  })
}

/** The tensors of a result, as PyTorch's goldens list them; booleans and numbers as tensors. */
function tensorsIn(result: unknown): Tensor[] {
  if (result instanceof Tensor) return [result]
  if (typeof result === 'boolean') return [torch.tensor(result)]
  if (typeof result === 'number') return [torch.tensor(result)]
  if (Array.isArray(result)) return result.flatMap(tensorsIn)
  return []
}

const isFloating = (stored: StoredTensor): boolean => /^b?float/.test(stored.dtype)

type Fn = (...args: unknown[]) => unknown

/** The call of the few cases whose source is a table. */
function fromTable(source: Readonly<Record<string, unknown>>): Fn {
  const { fn, equation, kwargs, ...rest } = source
  if (fn === 'einsum') return (...tensors) => torch.einsum(String(equation), ...(tensors as Tensor[]))
  const options = Object.fromEntries(Object.entries({ ...Object(kwargs), ...rest }).map(([key, value]) => [camelCase(key), value]))
  const { pad, ...others } = options
  const name = camelCase(String(fn))
  const call: unknown = Reflect.get(torch.nn.functional, name)
  if (typeof call !== 'function') throw new Error(`tensorfx has no ${name}`)
  return (...tensors) => Reflect.apply(call, null, pad === undefined ? [...tensors, others] : [...tensors, pad, others])
}

interface Module {
  loadStateDict: (state: Map<string, Tensor>) => void
  namedParameters: () => Iterable<readonly [string, Tensor]>
  eval: () => void
}

const pythonless = (name: string): string => name.split('.').map(camelCase).join('.')

/** The first set of goldens leaves out what some names stand for. */
const SOURCES: ReadonlyMap<string, string> = new Map([
  ['cross_entropy', 'lambda x: F.cross_entropy(x, torch.tensor([1, 0, 4]))'],
  ['cross_entropy_sum', "lambda x: F.cross_entropy(x, torch.tensor([1, 0, 4]), reduction='sum')"],
  ['cross_entropy_ignore_0', 'lambda x: F.cross_entropy(x, torch.tensor([1, 0, 4]), ignore_index=0)'],
  ['cross_entropy_label_smoothing', 'lambda x: F.cross_entropy(x, torch.tensor([1, 0, 4]), label_smoothing=0.1)'],
  ['cross_entropy_weight', 'lambda x, w: F.cross_entropy(x, torch.tensor([1, 0, 4]), weight=w.detach())'],
  ['nll_loss', 'lambda x: F.nll_loss(F.log_softmax(x, 1), torch.tensor([1, 0, 4]))'],
  ['scatter_add', 'lambda x, s: torch.scatter_add(x, 0, torch.tensor([[0, 1, 2, 0], [2, 2, 1, 0]]), s)'],
])

/** Batch normalization of the first set: the output, and the statistics that it updates. */
const batchNorm =
  (training: boolean): Fn =>
  (x, weight, bias) => {
    const [mean, variance] = [deterministic([3], 20), deterministic([3], 21, 0.2, 1)]
    return [torch.nn.functional.batchNorm(x as Tensor, mean, variance, weight as Tensor, bias as Tensor, { training }), mean, variance]
  }

/** The function of a case that is not a module. */
function functionOf(name: string, source: string): Fn {
  // The second set has batch_norm_1 and so on, with sources of their own.
  if (/^batch_norm_(train|eval)/.test(name)) return batchNorm(name.endsWith('train'))
  if (source.startsWith('lambda')) return evaluate(SOURCES.get(name) ?? source) as Fn
  const inFunctional: unknown = Object.keys(torch.nn.functional).includes(camelCase(source))
  return evaluate(inFunctional === true ? `F.${source}` : `torch.${source}`) as Fn
}

/** What a case calls, and the parameters of its module. */
function prepare(golden: GoldenCase): { readonly fn: Fn; readonly module: Module | null } {
  if (typeof golden.source !== 'string') return { fn: fromTable(golden.source), module: null }
  if (golden.params === undefined) return { fn: functionOf(golden.name, golden.source), module: null }
  const made = evaluate(golden.source) as Fn
  const module = made() as Module
  module.loadStateDict(new Map(Object.entries(golden.params).map(([name, stored]) => [name, fromStored(stored)])))
  if (golden.note?.includes('eval') === true) module.eval()
  const call = evaluate(
    golden.call ?? CALLS.get(golden.name) ?? `lambda m, ${Object.keys(golden.inputs).join(', ')}: m(${Object.keys(golden.inputs).join(', ')})`,
  ) as Fn
  return { fn: (...inputs) => call(module, ...inputs), module }
}

/** Calls that the first set of goldens leaves out. */
const CALLS: ReadonlyMap<string, string> = new Map([
  ['MHA_batch_first', 'lambda m, x: m(x, x, x)'],
  [
    'MHA_causal_noavg',
    'lambda m, x: m(x, x, x, attn_mask=torch.tensor([[False, True, True], [False, False, True], [False, False, False]]), average_attn_weights=False)',
  ],
  ['LSTM_h0c0', 'lambda m, x, h, c: m(x, (h, c))'],
])

function weighted(results: readonly Tensor[], seeds: readonly number[]): Tensor | null {
  return results.reduce<Tensor | null>((sum, t, k) => {
    const term = t.mul(deterministic(t.shape, seeds[k] ?? 0).to(t.dtype)).sum()
    return sum === null ? term : sum.add(term)
  }, null)
}

/** Runs one case. Throws if it fails in any way. */
export function runCase(golden: GoldenCase, compiled: boolean): void {
  const { tol = 2e-5, grad_tol: gradTolerance = 5e-5 } = golden
  const { fn: call, module } = prepare(golden)
  const fn = compiled ? (compile<typeof call>(call) as Fn) : call
  const inputs = new Map(Object.entries(golden.inputs).map(([key, stored]) => [key, fromStored(stored)]))
  for (const [key, input] of inputs) if (isFloating(golden.inputs[key] ?? { shape: [], dtype: '', data: [] })) input.requiresGrad_()
  const outputs = tensorsIn(fn(...inputs.values()))
  if (outputs.length !== golden.outputs.length) throw new Error(`${outputs.length} outputs instead of ${golden.outputs.length}`)
  outputs.forEach((out, k) => expectClose(out, golden.outputs[k] ?? { shape: [], dtype: '', data: [] }, `output ${k}`, tol))
  if (golden.grads === undefined) return
  const seeds: number[] = []
  const differentiable = outputs.filter((out, k) => {
    const wanted = out.requiresGrad && isFloating(golden.outputs[k] ?? { shape: [], dtype: '', data: [] })
    if (wanted) seeds.push(900 + k)
    return wanted
  })
  const loss = weighted(differentiable, seeds)
  if (loss === null) throw new Error('no output has a gradient')
  const second = golden.grads2 !== undefined && !compiled
  loss.backward({ createGraph: second })
  const first = new Map([...inputs].map(([key, input]) => [key, input.grad]))
  checkGradients(golden.grads, first, 'gradient of', gradTolerance)
  if (golden.param_grads !== undefined && module !== null) {
    const own = new Map([...module.namedParameters()].map(([name, parameter]) => [name, parameter.grad]))
    const stored = Object.fromEntries(Object.entries(golden.param_grads).map(([name, value]) => [own.has(name) ? name : pythonless(name), value]))
    checkGradients(stored, own, 'gradient of', gradTolerance)
  }
  if (!second || golden.grads2 === undefined) return
  const gradients = [...inputs.values()].flatMap((input, j) => (input.grad === null || input.grad === undefined ? [] : [{ t: input.grad, j }]))
  for (const input of inputs.values()) input.grad = null
  weighted(
    gradients.map(({ t }) => t),
    gradients.map(({ j }) => 950 + j),
  )?.backward()
  checkGradients(golden.grads2, new Map([...inputs].map(([key, input]) => [key, input.grad])), 'second gradient of', gradTolerance * 4)
}

function checkGradients(
  stored: Readonly<Record<string, StoredTensor | null>>,
  own: ReadonlyMap<string, Tensor | null | undefined>,
  what: string,
  tolerance: number,
): void {
  for (const [key, value] of Object.entries(stored)) {
    if (!own.has(key)) throw new Error(`${what} ${key}: there is no such tensor`)
    const grad = own.get(key) ?? null
    if (value === null) {
      if (grad !== null && flat(grad).some((v) => v !== 0)) throw new Error(`${what} ${key}: expected none`)
    } else if (grad !== null) expectClose(grad, value, `${what} ${key}`, tolerance)
    else if (value.data.some((v) => v !== 0)) throw new Error(`${what} ${key} is missing`)
  }
}
