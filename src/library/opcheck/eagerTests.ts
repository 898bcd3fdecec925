// The tests of opcheck that call the operator directly: what it writes to, its gradients, and its fake function.
import { grad, noGrad } from '../../autograd/index.ts'
import { FakeTensorMode, fakeLike, withMode } from '../../dispatch/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { ones, tensor } from '../../ops/index.ts'
import { Tensor, formatShape } from '../../tensor/index.ts'
import { hasBackward } from '../customOp.ts'
import { tensorsOf } from '../results.ts'
import { isWritten, numbersOf, resultsOf, snapshot, wantedOf } from './sample.ts'
import type { Sample } from './sample.ts'

/** The arguments are written to and returned only as the schema says. */
export function testSchema(sample: Sample): string | null {
  const { op } = sample
  const tensors = sample.copies()
  const args = sample.normalized(tensors)
  const before = args.map((arg) => tensorsOf([arg]).map(snapshot))
  const results = resultsOf(noGrad(() => sample.call(tensors)))
  for (const [i, { name, type }] of op.schema.args.entries()) {
    if (!type.mutated && before[i]?.some(isWritten) === true) return `Argument ${name} is not defined as mutable but was mutated`
    if (op.tags.has('view')) continue
    const memory = new Set(before[i]?.map((s) => s.tensor.storage))
    if (results.some((result) => result.numel > 0 && memory.has(result.storage)))
      return `Argument ${name} is not defined to alias output but was aliasing`
  }
  return null
}

/** A call on tensors that require grad has a backward that runs, and returns gradients that fit. */
export function testAutogradRegistration(sample: Sample): string | null {
  const tensors = sample.copies()
  const wanted = wantedOf(tensors)
  if (wanted.length === 0) return null
  const { op } = sample
  if (op.tags.has('mutates')) return 'it writes to its arguments, so it has no gradients; use samples that do not require grad'
  if (!hasBackward(op)) return 'no autograd formula was registered, but an argument of the sample requires grad'
  const results = resultsOf(sample.call(tensors)).filter((result) => dtypeInfo[result.dtype].floating)
  if (results.length === 0) return null
  const detached = results.findIndex((result) => !result.requiresGrad)
  if (detached >= 0) return `result ${detached} does not require grad, but an argument does`
  grad(results, wanted, { gradOutputs: results.map((result) => ones(result.shape, { dtype: result.dtype })), allowUnused: true })
  return null
}

/** The fake function gives the shapes, dtypes and strides of the real results. */
export function testFakeTensor(sample: Sample): string | null {
  const real = resultsOf(noGrad(() => sample.call(sample.copies())))
  const fakes = sample.copies().map(fakeLike)
  const fake = resultsOf(withMode(new FakeTensorMode(), () => noGrad(() => sample.call(fakes))))
  if (fake.length !== real.length) return `the fake function returns ${fake.length} tensors, forward ${real.length}`
  for (const [i, result] of real.entries()) {
    const other = fake[i]
    if (other === undefined) continue
    for (const property of ['shape', 'strides'] as const)
      if (result[property].join() !== other[property].join())
        return `${property === 'shape' ? 'Shapes' : 'Strides'} ${formatShape(other[property])} and ${formatShape(result[property])} are not equal: result ${i} of the fake function and of forward`
    if (result.dtype !== other.dtype)
      return `Dtypes ${other.dtype} and ${result.dtype} are not equal: result ${i} of the fake function and of forward`
  }
  return null
}

/** How many elements of each argument are moved to measure its gradient. */
const MOVED = 32

/** A fixed weight for each element of a result, so that each matters differently. */
const weight = (result: number, element: number): number => 0.5 + (((element + 1) * 0.61803398875 + result * 0.37) % 1)

const weightsOf = (result: Tensor, i: number): Tensor =>
  tensor(
    numbersOf(result).map((_, element) => weight(i, element)),
    { dtype: result.dtype },
  ).reshape(result.shape)

/** The gradients are those of finite differences. */
export function testGradient(sample: Sample): string | null {
  const tensors = sample.copies()
  const wanted = wantedOf(tensors)
  if (wanted.length === 0 || !hasBackward(sample.op) || sample.op.tags.has('mutates')) return null
  const floating = (result: Tensor): boolean => dtypeInfo[result.dtype].floating
  const results = resultsOf(sample.call(tensors)).filter(floating)
  const analytic = grad(results, wanted, { gradOutputs: results.map(weightsOf), allowUnused: true })
  const isDouble = [...wanted, ...results].every((t) => t.dtype === 'float64')
  // The step and tolerances of PyTorch's gradcheck, and what float32 allows.
  const { step, atol, rtol } = isDouble ? { step: 1e-6, atol: 1e-5, rtol: 1e-3 } : { step: 1e-2, atol: 1e-2, rtol: 1e-2 }
  const loss = (values: readonly Tensor[]): number =>
    noGrad(() =>
      resultsOf(sample.call(values))
        .filter(floating)
        .reduce((sum, result, i) => sum + numbersOf(result).reduce((s, value, element) => s + value * weight(i, element), 0), 0),
    )
  for (const [which, input] of wanted.entries()) {
    const position = tensors.indexOf(input)
    const values = numbersOf(input)
    const got = analytic[which] ?? null
    const gradient = got === null ? values.map(() => 0) : numbersOf(got)
    const stride = Math.max(1, Math.ceil(values.length / MOVED))
    for (let i = 0; i < values.length; i += stride) {
      const at = (delta: number): number => {
        const moved = tensor(
          values.map((value, j) => (j === i ? value + delta : value)),
          { dtype: input.dtype },
        ).reshape(input.shape)
        const copies = sample.copies()
        copies[position] = moved
        return loss(copies)
      }
      const numerical = (at(step) - at(-step)) / (2 * step)
      const computed = gradient[i] ?? NaN
      if (Math.abs(computed - numerical) <= atol + rtol * Math.abs(numerical)) continue
      return `the gradient of tensor ${position} is ${Number(computed.toPrecision(6))} at element ${i}, finite differences give ${Number(numerical.toPrecision(6))}`
    }
  }
  return null
}
