// gradcheck: derivatives against differences. PyTorch's torch.autograd.gradcheck.
import { AutogradError, enableGrad, grad, noGrad } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { detach, mul, randnLike, reshape, sum, tensor, viewAsComplex, viewAsReal } from '../ops/index.ts'
import { checkArray, checkCallable, checkCount, checkOptions, checkSynchronous, valueText } from '../protocol/index.ts'
import { treeLeaves } from '../pytree/index.ts'
import { Tensor, formatShape } from '../tensor/index.ts'

/** Options of {@link gradcheck} and {@link gradgradcheck}. */
export interface GradcheckOptions {
  /** The step of the differences; default 1e-6. */
  readonly eps?: number
  /** Differences that are allowed; default 1e-5 and 1e-3. */
  readonly atol?: number
  readonly rtol?: number
  /** Throw (default), or return false. */
  readonly raiseException?: boolean
}

const floating = (t: Tensor): boolean => dtypeInfo[t.dtype].differentiable
const numbers = (t: Tensor): number[] => Array.from(detach(t).contiguous().toTypedArray(), Number)

/** The sum of the products of all numbers, those of complex tensors in pairs: what a gradient is the gradient of. */
const product = (a: Tensor, b: Tensor): Tensor => sum(a.isComplex() ? mul(viewAsReal(a), viewAsReal(b)) : mul(a, b))

/** A tensor like `x` of other numbers. */
function withNumbers(x: Tensor, values: readonly number[]): Tensor {
  const all = tensor(Float64Array.from(values))
  return x.isComplex() ? viewAsComplex(reshape(all, [...x.shape, 2])) : reshape(all, x.shape)
}

function floatOutputs(where: string, result: unknown): readonly Tensor[] {
  checkSynchronous(where, 'fn', result)
  return treeLeaves(result).flatMap((leaf) => {
    if (!(leaf instanceof Tensor)) throw new ArgumentError(`${where}: fn must return tensors, got ${valueText(leaf)}.`)
    return floating(leaf) ? [leaf] : []
  })
}

/**
 * Compares the gradients of `fn` with differences, for all inputs that require grad; these must be float64 or complex128, in which differences are exact enough. Returns true. Throws
 * AutogradError that names the input and the element if they differ (or returns false with `raiseException: false`), and ArgumentError for other inputs. PyTorch's
 * torch.autograd.gradcheck.
 *
 *     gradcheck((x) => x.sin(), [torch.randn([3], { dtype: 'float64', requiresGrad: true })])
 */
export function gradcheck(fn: (...inputs: Tensor[]) => unknown, inputs: readonly Tensor[], options: GradcheckOptions = {}): boolean {
  checkCount('gradcheck', arguments, 3)
  return check('gradcheck', fn, inputs, options)
}

function check(where: string, fn: (...inputs: Tensor[]) => unknown, inputs: readonly Tensor[], options: GradcheckOptions): boolean {
  checkCallable(where, 'fn', fn)
  checkArray(where, 'inputs', inputs)
  checkOptions(where, options, { eps: 'number', atol: 'number', rtol: 'number', raiseException: 'boolean' })
  const { eps = 1e-6, atol = 1e-5, rtol = 1e-3, raiseException = true } = options
  const wanted = inputs.filter((x) => x instanceof Tensor && x.requiresGrad)
  if (wanted.length === 0) throw new ArgumentError(`${where}: no input requires grad; make one with { dtype: 'float64', requiresGrad: true }.`)
  const other = wanted.find((x) => x.dtype !== 'float64' && x.dtype !== 'complex128')
  if (other !== undefined)
    throw new ArgumentError(
      `${where}: inputs must be float64 (or complex128), in which differences are exact enough, got ${other.dtype}; convert it: x.double().`,
    )
  const outputs = floatOutputs(
    where,
    enableGrad(() => fn(...inputs)),
  )
  for (const [o, output] of outputs.entries()) {
    // Each output with weights of its own, so that every element matters differently.
    const weights = randnLike(detach(output))
    const scalar = (result: unknown): Tensor => product(floatOutputs(where, result)[o] ?? output, weights)
    const analytic = output.requiresGrad ? grad(scalar(enableGrad(() => fn(...inputs))), wanted, { allowUnused: true }) : wanted.map(() => null)
    for (const [which, input] of wanted.entries()) {
      const values = numbers(input)
      const own = analytic[which] ?? null
      const got = own === null ? values.map(() => 0) : numbers(own)
      for (const [i, value] of values.entries()) {
        const at = (shifted: number): number =>
          noGrad(() => {
            const moved = withNumbers(input, values.with(i, shifted))
            return Number(scalar(fn(...inputs.map((x) => (x === input ? moved : x)))).item())
          })
        const numeric = (at(value + eps) - at(value - eps)) / (2 * eps)
        if (Math.abs((got[i] ?? NaN) - numeric) <= atol + rtol * Math.abs(numeric)) continue
        if (!raiseException) return false
        throw new AutogradError(
          `${where}: the gradient of output ${o} for input ${inputs.indexOf(input)} (shape ${formatShape(input.shape)}) is wrong at element ${i}: ${got[i]}, by differences ${numeric}.`,
        )
      }
    }
  }
  return true
}

/** The same as {@link gradcheck} for the gradients themselves: checks second derivatives. PyTorch's torch.autograd.gradgradcheck. */
export function gradgradcheck(fn: (...inputs: Tensor[]) => unknown, inputs: readonly Tensor[], options: GradcheckOptions = {}): boolean {
  checkCount('gradgradcheck', arguments, 3)
  checkCallable('gradgradcheck', 'fn', fn)
  checkArray('gradgradcheck', 'inputs', inputs)
  const wanted = inputs.flatMap((x, i) => (x instanceof Tensor && x.requiresGrad ? [i] : []))
  let weights: readonly Tensor[] | null = null
  const gradients = (...args: Tensor[]): readonly Tensor[] =>
    enableGrad(() => {
      const inner = args.map((x, i) => (wanted.includes(i) && !x.requiresGrad ? detach(x).requiresGrad_() : x))
      const outputs = floatOutputs('gradgradcheck', fn(...inner)).filter((t) => t.requiresGrad)
      weights ??= outputs.map((t) => randnLike(detach(t)))
      const found = grad(
        outputs,
        wanted.flatMap((i) => inner.slice(i, i + 1)),
        { gradOutputs: weights, createGraph: true, allowUnused: true },
      )
      return found.flatMap((g) => (g === null ? [] : [g]))
    })
  return check('gradgradcheck', gradients, inputs, options)
}
