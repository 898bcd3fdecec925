// Runs calls on complex numbers, of FFTs and of windows that PyTorch has recorded (test/goldens/around/ops), with their gradients, and says how they went.
import { Tensor, TensorfxError, compile, torch } from 'tensorfx'
import { isRefuted } from '../derivative.ts'
import type { Shift } from '../derivative.ts'
import { camelCase } from '../python.ts'
import { callOf, optionsOf } from '../opdb/calls.ts'
import { Absent, decode, readFiles } from '../opdb/stored.ts'
import type { Database, Stored, StoredTensor } from '../opdb/stored.ts'

/** Results that are fixed only up to phases are compared by what does not depend on them. */
type Gauge = 'eig' | 'eigh' | 'svd' | 'qr'

export interface RecordedCall {
  readonly dt: string
  readonly args: readonly Stored[]
  readonly kw: Readonly<Record<string, Stored>>
  readonly random: boolean
  readonly gauge?: Gauge
  readonly out: readonly StoredTensor[]
  readonly grads?: readonly (StoredTensor | null)[]
}

export const readCalls = (): Database<RecordedCall> => readFiles('around/ops/ops.jsonl.gz', 'around/ops/data.bin.gz')

/** `refuted`: PyTorch's recorded gradient is not the derivative, ours is. */
export type Kind = 'agree' | 'wrong' | 'gradient' | 'refuted' | 'dtype' | 'refused' | 'raw' | 'missing' | 'absent'
export interface Verdict {
  readonly kind: Kind
  readonly why: string
}

class Difference extends Error {
  readonly kind: Kind
  constructor(kind: Kind, message: string) {
    super(message)
    this.kind = kind
  }
}

const numbers = (t: Tensor): ArrayLike<number> => Array.from(t.dtype === 'int64' ? t.toBigIntArray() : t.detach().toTypedArray(), Number)

/** The recorded tolerance: 1e-5, or four times what PyTorch's float32 is off its float64. */
function compare(kind: Kind, what: string, actual: Tensor, wanted: Tensor, { e = 0 }: StoredTensor): void {
  if (actual.shape.join() !== wanted.shape.join())
    throw new Difference(kind, `${what}: shape [${actual.shape.join()}] instead of [${wanted.shape.join()}]`)
  const [got, want] = [numbers(actual), numbers(wanted)]
  for (let i = 0; i < want.length; i++) {
    const [a, b] = [Number(got[i]), Number(want[i])]
    const near = Number.isFinite(b) ? Math.abs(a - b) <= Math.max(1e-5 + 1e-5 * Math.abs(b), 4 * e) : Object.is(a, b) || Number.isNaN(b)
    if (!near) throw new Difference(kind, `${what}[${i}]: ${a} instead of ${b}`)
  }
  if (actual.dtype !== wanted.dtype) throw new Difference('dtype', `${what}: ${actual.dtype} instead of ${wanted.dtype}`)
}

const tensorsIn = (result: unknown, dtype: string): readonly Tensor[] => {
  if (result instanceof Tensor) return [result]
  if (typeof result === 'boolean') return [torch.tensor(result)]
  if (typeof result === 'number' || (typeof result === 'object' && result !== null && 're' in result))
    return [torch.tensor(result as number, { dtype: dtype as 'float32' })]
  return Array.isArray(result) ? result.flatMap((item) => tensorsIn(item, dtype)) : []
}

const squares = (z: Tensor): Tensor => torch.abs(z).square()

/** For each eigenvalue that is wanted the position of the nearest one that there is, each taken once. */
function order(values: Tensor, wanted: Tensor): Tensor {
  const n = wanted.shape.at(-1) ?? 0
  const [have, want] = [numbers(values), numbers(wanted)]
  const positions: number[] = []
  for (let start = 0; start < wanted.numel; start += n) {
    const free = new Set(Array.from({ length: n }, (_, i) => i))
    for (let i = start; i < start + n; i++) {
      const distance = (j: number): number =>
        Math.hypot(Number(have[2 * (start + j)]) - Number(want[2 * i]), Number(have[2 * (start + j) + 1]) - Number(want[2 * i + 1]))
      const nearest = [...free].reduce((a, b) => (distance(b) < distance(a) ? b : a))
      free.delete(nearest)
      positions.push(nearest)
    }
  }
  return torch.tensor(positions, { dtype: 'int64' }).reshape(wanted.shape)
}

/** Results that are fixed up to phases and order, as what can be compared with the recorded ones. */
function comparable(gauge: Gauge | undefined, out: readonly Tensor[], recorded: readonly Tensor[], name: string): readonly Tensor[] {
  const [values, vectors] = out
  const [wanted] = recorded
  if (gauge === undefined) return out
  if (gauge !== 'eig' || values === undefined || wanted === undefined) return GAUGES[gauge](out, name)
  const by = order(values, wanted)
  const sorted = values.gather(-1, by)
  return vectors === undefined ? [sorted] : [sorted, squares(vectors.gather(-1, by.unsqueeze(-2).expand(vectors.shape)))]
}

/** What does not depend on phases. */
const GAUGES: Readonly<Record<Gauge, (out: readonly Tensor[], name: string) => readonly Tensor[]>> = {
  eig: ([values, vectors]) => [
    ...(values === undefined ? [] : [values.mul(values).mul(values).sum(-1)]),
    ...(vectors === undefined ? [] : [squares(squares(vectors)).sum([-2, -1])]),
  ],
  eigh: ([values, vectors]) => [...(values === undefined ? [] : [values]), ...(vectors === undefined ? [] : [squares(vectors)])],
  svd: ([u, s, v], name) => {
    if (u === undefined || s === undefined || v === undefined) return []
    const k = s.shape.at(-1) ?? 0
    return [squares(u.narrow(-1, 0, k)), s, squares(name === 'linalg.svd' ? v.narrow(-2, 0, k) : v.narrow(-1, 0, k))]
  },
  qr: (out) => out,
}

/** The incoming gradient of output k. */
function incoming(out: Tensor, k: number): Tensor {
  const re = torch.tensor(Float64Array.from({ length: out.numel }, (_, i) => Math.cos(0.7 * i + k + 1)))
  const im = torch.tensor(Float64Array.from({ length: out.numel }, (_, i) => Math.sin(0.5 * i + k + 2)))
  return (out.isComplex() ? torch.complex(re, im) : re).to(out.dtype).reshape(out.shape)
}

/** Whether draws or the memory decide the values. */
const DRAWN = /^(new_)?empty|^rand|^normal|^uniform|^resize/

/** The arguments of a call, and those tensors of them that require grad. */
function argumentsOf(tensor: (stored: StoredTensor) => Tensor, one: RecordedCall) {
  const leaves: Tensor[] = []
  const read = (stored: StoredTensor): Tensor => {
    const t = tensor(stored)
    if (stored.g === true) leaves.push(t.requiresGrad_())
    return t
  }
  const args = one.args.map((arg) => decode(arg, read))
  const options = optionsOf(Object.entries(one.kw).map(([key, value]) => [key, decode(value, read)]))
  return { args, options, leaves }
}

/** The first difference of gradients from the recorded ones. */
function differenceOf(
  tensor: (stored: StoredTensor) => Tensor,
  grads: readonly (Tensor | null)[],
  recorded: readonly (StoredTensor | null)[],
): Difference | null {
  try {
    recorded.forEach((stored, i) => {
      const actual = grads[i] ?? null
      if (stored === null) return
      const wanted = tensor(stored)
      if (actual !== null) compare('gradient', `gradient ${i}`, actual, wanted, stored)
      else if (Array.from(numbers(wanted)).some((x) => x !== 0)) throw new Difference('gradient', `gradient ${i}: none`)
    })
    return null
  } catch (error) {
    if (error instanceof Difference && error.kind === 'gradient') return error
    throw error
  }
}

const WIDE: Readonly<Record<string, 'float64' | 'complex128'>> = { float32: 'float64', complex64: 'complex128' }

/** What the gradients are those of, in float64 and with one number of the inputs moved: the products of results and incoming gradients, real and imaginary parts by themselves. */
function lossAt(
  tensor: (stored: StoredTensor) => Tensor,
  call: NonNullable<ReturnType<typeof callOf>>,
  one: RecordedCall,
  name: string,
  { leaf, element, by }: Shift,
): number {
  const wide = (stored: StoredTensor): Tensor => {
    const t = tensor(stored)
    const dtype = WIDE[t.dtype]
    return dtype === undefined ? t : t.to(dtype)
  }
  const { args, options, leaves } = argumentsOf(wide, one)
  const moved = leaves[leaf]?.detach()
  if (moved !== undefined) (moved.isComplex() ? torch.viewAsReal(moved) : moved).view(-1).narrow(0, element, 1).add_(by)
  const results = tensorsIn(call(args, options), one.out[0]?.dtype ?? '')
  return (one.gauge === undefined ? results : GAUGES[one.gauge](results, name)).reduce((sum, out, k) => {
    const weights = numbers(incoming(out, k))
    return out.requiresGrad ? Array.from(numbers(out)).reduce((total, x, i) => total + x * Number(weights[i]), sum) : sum
  }, 0)
}

export function judge({ tensor }: Database<RecordedCall>, name: string, variant: string, one: RecordedCall, compiled = false): Verdict {
  try {
    const call = callOf(name, variant)
    if (call === null) return { kind: 'missing', why: `no ${camelCase(name)}` }
    const { args, options, leaves } = argumentsOf(tensor, one)
    const run = compiled ? compile((): unknown => call(args, options)) : (): unknown => call(args, options)
    const results = tensorsIn(run(), one.out[0]?.dtype ?? '')
    if (results.length !== one.out.length) throw new Difference('wrong', `${results.length} results instead of ${one.out.length}`)
    const recorded = one.out.map((stored) => tensor(stored))
    const values = comparable(one.gauge, results, recorded, name)
    const wanted = comparable(one.gauge, recorded, recorded, name)
    one.out.forEach((stored, k) => {
      const actual = results[k]
      if (actual === undefined) return
      const [value, want] = [values[k], wanted[k]]
      if (!one.random && !DRAWN.test(name) && value !== undefined && want !== undefined) compare('wrong', `result ${k}`, value, want, stored)
      if (actual.shape.join() !== stored.shape.join() || actual.dtype !== stored.dtype)
        throw new Difference('wrong', `result ${k}: ${actual.dtype} of shape [${actual.shape.join()}]`)
    })
    if (one.grads === undefined || one.random) return { kind: 'agree', why: '' }
    const out = one.gauge === undefined ? results : GAUGES[one.gauge](results, name)
    const ends = out.map((t, k) => [t, k] as const).filter(([t]) => t.requiresGrad)
    if (ends.length === 0) throw new Difference('gradient', 'no result requires grad')
    const grads = torch.autograd.grad(
      ends.map(([t]) => t),
      leaves,
      { gradOutputs: ends.map(([t, k]) => incoming(t, k)), allowUnused: true },
    )
    const difference = differenceOf(tensor, grads, one.grads)
    if (difference === null) return { kind: 'agree', why: '' }
    const ours = grads.map((grad, i) => (grad === null ? new Float64Array(numbers(leaves[i] as Tensor).length) : numbers(grad)))
    const theirs = one.grads.map((stored) => (stored === null ? [] : numbers(tensor(stored))))
    if (!isRefuted(theirs, ours, (shift) => lossAt(tensor, call, one, name, shift))) throw difference
    return { kind: 'refuted', why: difference.message }
  } catch (error) {
    if (error instanceof Difference) return { kind: error.kind, why: error.message }
    if (error instanceof Absent) return { kind: 'absent', why: error.message }
    const why = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    return { kind: error instanceof TensorfxError && error.code !== 'TFX_INTERNAL' ? 'refused' : 'raw', why }
  }
}
