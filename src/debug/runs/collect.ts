// One run of a model, forward and backward, and what can be seen of it afterwards: outputs, loss, gradients, parameters, buffers, inputs.
// PyTorch's torch._dynamo.debug_utils: run_fwd_maybe_bwd, and the functions that it calls.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { add, clone, div, sum, zerosLike } from '../../ops/index.ts'
import { checkArray, checkCallable, checkCount, checkDepth, checkOptions, isPlainObject, valueText } from '../../protocol/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { contained, isolated, isolatedInputs } from './isolated.ts'
import { moduleOf, observe } from './observe.ts'
import type { Runnable } from './observe.ts'

/** A copy of each tensor that keeps its layout, its gradient and whether it requires grad; other values are returned as they are. PyTorch's `clone_inputs_retaining_gradness`. */
export function cloneInputsRetainingGradness(inputs: readonly unknown[]): unknown[] {
  checkCount('cloneInputsRetainingGradness', arguments, 1)
  checkArray('cloneInputsRetainingGradness', 'inputs', inputs)
  // Each by itself: PyTorch makes two clones of a tensor that is given twice.
  return inputs.map((input) => {
    if (!(input instanceof Tensor)) return input
    // A clone of an expanded tensor has all its elements.
    const isExpanded = input.strides.some((stride, i) => stride === 0 && (input.shape[i] ?? 0) > 1)
    const [copy] = isExpanded ? [noGrad(() => clone(input)).requiresGrad_(input.requiresGrad)] : isolatedInputs([input])
    const { grad } = input
    if (copy instanceof Tensor && grad !== null) copy.grad = noGrad(() => clone(grad))
    return copy
  })
}

/** Options of {@link runFwdMaybeBwd}. */
export interface RunOptions {
  /** Forward only. Default false. */
  readonly onlyFwd?: boolean
  /** Run on the inputs themselves, not on copies: gradients are added to theirs. Default false. */
  readonly disableClone?: boolean
}

/**
 * Runs a model forward and, if an output requires grad, backward from {@link reduceToScalarLoss}. Returns the output alone with `onlyFwd`, otherwise what
 * {@link collectResults} returns, without the loss. The run is on copies of the model and the inputs; a function cannot be copied, so what it writes to is put back afterwards. The random
 * generators are put back too. PyTorch's `run_fwd_maybe_bwd`.
 *
 * @throws ArgumentError for bad arguments, and for an output that cannot be reduced to a loss; and whatever the model throws.
 */
export function runFwdMaybeBwd(model: Runnable, inputs: readonly unknown[], options: RunOptions = {}): unknown {
  checkCount('runFwdMaybeBwd', arguments, 3)
  checkCallable('runFwdMaybeBwd', 'model', model)
  checkArray('runFwdMaybeBwd', 'inputs', inputs)
  checkOptions('runFwdMaybeBwd', options, { onlyFwd: 'boolean', disableClone: 'boolean' })
  const onlyFwd = options.onlyFwd ?? false
  if (options.disableClone === true) {
    const own = isolated(model, []).model
    const out: unknown = Reflect.apply(own, undefined, inputs)
    if (onlyFwd) return out
    if (requiresBwdPass(out)) reduceToScalarLoss(out).backward()
    return listOf(moduleOf(own), out, null, inputs)
  }
  const lossOf = (out: unknown): Tensor | null => (requiresBwdPass(out) ? reduceToScalarLoss(out) : null)
  const seen = contained((trace) => observe(model, inputs, { onlyFwd, lossOf }, trace))
  if (onlyFwd) return seen.output
  const gradients = Object.fromEntries([...seen.gradients].map(([name, grad]) => [`${name}.grad`, grad]))
  // PyTorch's clones keep their gradients, to which those of the run are added.
  const earlier = treeLeaves(inputs).flatMap((input) => (input instanceof Tensor ? [input.grad] : []))
  const ofInputs = [...seen.inputGradients.values()].map((gradient, i) => noGrad(() => total(earlier[i] ?? null, gradient)))
  return [seen.output, null, gradients, Object.fromEntries(seen.parameters), Object.fromEntries(seen.buffers), ...ofInputs]
}

function total(a: Tensor | null, b: Tensor | null): Tensor | null {
  if (a === null) return b
  return b === null ? clone(a) : add(a, b)
}

/**
 * What a run came to, as a list: the output, the loss, and objects of the gradients of parameters (`weight.grad`; zeros where there is none), parameters and buffers by
 * name; then the gradient of each input that is a tensor, also of those in an array. PyTorch's `collect_results`.
 *
 * @throws ArgumentError if the model is neither a Module nor a compiled one.
 */
export function collectResults(model: Runnable, prediction: unknown, loss: unknown, exampleInputs: readonly unknown[]): unknown[] {
  checkCount('collectResults', arguments, 4)
  checkCallable('collectResults', 'model', model)
  checkArray('collectResults', 'exampleInputs', exampleInputs)
  const owner = moduleOf(model)
  if (owner === null)
    throw new ArgumentError('collectResults: model must be a Module, since the parameters of a function have no names; got a function.')
  return listOf(owner, prediction, loss, exampleInputs)
}

function listOf(owner: Module | null, prediction: unknown, loss: unknown, exampleInputs: readonly unknown[]): unknown[] {
  const gradients: Record<string, unknown> = {}
  const parameters: Record<string, unknown> = {}
  for (const [name, parameter] of owner?.namedParameters() ?? []) {
    if (!(parameter instanceof Tensor)) continue
    gradients[`${name}.grad`] = parameter.grad ?? noGrad(() => zerosLike(parameter))
    parameters[name] = parameter
  }
  const inputs = exampleInputs.flatMap((input) => (Array.isArray(input) ? input : [input])).filter((input) => input instanceof Tensor)
  return [prediction, loss, gradients, parameters, Object.fromEntries(owner?.namedBuffers() ?? []), ...inputs.map((input) => input.grad)]
}

/**
 * Whether a backward pass follows: a tensor of the output requires grad. It looks where {@link reduceToScalarLoss} looks, and at numbers and null, which require nothing.
 * PyTorch's `requires_bwd_pass`, which refuses objects and model outputs.
 *
 * @throws ArgumentError for a text, a fraction, or an object of another class.
 */
export function requiresBwdPass(out: unknown): boolean {
  checkCount('requiresBwdPass', arguments, 1)
  return requiresGrad(out, 0)
}

function requiresGrad(out: unknown, depth: number): boolean {
  checkDepth(depth)
  if (out instanceof Tensor) return out.requiresGrad
  if (out === null || out === undefined || Number.isInteger(out) || typeof out === 'boolean') return false
  return partsOf(out).some((part) => requiresGrad(part, depth + 1))
}

const cannotReduce = (out: unknown): ArgumentError =>
  new ArgumentError(`reduceToScalarLoss: don't know how to reduce ${valueText(out)}; return tensors, or arrays or objects of tensors.`)

/** Classes of model outputs that have their prediction in a field. */
const PREDICTION: ReadonlyMap<string, string> = new Map([
  ['MaskedLMOutput', 'logits'],
  ['Seq2SeqLMOutput', 'logits'],
  ['CausalLMOutputWithCrossAttentions', 'logits'],
  ['SquashedNormal', 'mean'],
])

/**
 * One scalar from any output: the mean of a tensor, the average over arrays and objects, that of `logits` for model outputs. PyTorch's `reduce_to_scalar_loss`.
 *
 * @throws ArgumentError if a part is neither.
 */
export function reduceToScalarLoss(out: unknown): Tensor {
  checkCount('reduceToScalarLoss', arguments, 1)
  return reduced(out, 0)
}

function reduced(out: unknown, depth: number): Tensor {
  checkDepth(depth)
  // A sum and a division, since integers have no mean.
  if (out instanceof Tensor) return div(sum(out), out.numel)
  const parts = partsOf(out)
  // PyTorch takes the sum here.
  if (classOf(out) === 'SquashedNormal' && parts[0] instanceof Tensor) return sum(parts[0])
  const losses = parts.map((part) => reduced(part, depth + 1))
  const [first, ...rest] = losses
  if (first === undefined) throw cannotReduce(out)
  return div(
    rest.reduce((a, b) => add(a, b), first),
    losses.length,
  )
}

const classOf = (out: unknown): string => (typeof out === 'object' && out !== null ? (Object.getPrototypeOf(out)?.constructor?.name ?? '') : '')

/** What an output consists of. Throws ArgumentError if that is not known. */
function partsOf(out: unknown): readonly unknown[] {
  if (Array.isArray(out)) return out
  if (out instanceof Map) return [...out.values()]
  if (isPlainObject(out)) return Object.values(out)
  const field = PREDICTION.get(classOf(out))
  if (field === undefined || typeof out !== 'object' || out === null) throw cannotReduce(out)
  return [Reflect.get(out, field)]
}
