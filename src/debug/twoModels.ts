// Runs a model and its compiled form on the same inputs and compares what both produce: outputs, loss, gradients, parameters, buffers.
// PyTorch's torch._dynamo.debug_utils: run_fwd_maybe_bwd, reduce_to_scalar_loss, cast_to_fp64, same_two_models.
import { noGrad } from '../autograd/index.ts'
import { config } from '../dynamo/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { GraphModule } from '../fx/index.ts'
import { checkGraphModule } from '../protocol/graphChecks.ts'
import type { Argument } from '../fx/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { Module, cloneModule } from '../module/index.ts'
import { add, clone, div, sum, to } from '../ops/index.ts'
import { checkArray, checkCallable, checkDepth, checkOptions } from '../protocol/index.ts'
import { treeLeaves } from '../pytree/index.ts'
import { Tensor, asTensor } from '../tensor/index.ts'
import { log } from './log.ts'
import { same } from './same.ts'

/** Something to run: a module, or a function that takes the inputs one by one. */
export type Runnable = Module | ((...inputs: never[]) => unknown)

function callOf(model: Runnable, inputs: readonly unknown[]): unknown {
  // The inputs are those of the graph, which the caller has checked.
  return Reflect.apply(model, undefined, inputs)
}

/** A copy of an input: a leaf of its own that requires grad if the original does. Numbers are returned as they are. */
export function cloneInput(input: unknown): unknown {
  if (!(input instanceof Tensor)) return input
  const copy = noGrad(() => clone(input))
  copy.requiresGrad = input.requiresGrad
  return copy
}

export interface RunOptions {
  /** Forward only. Default false. */
  readonly onlyFwd?: boolean
  /** Run on the inputs themselves, not on clones. Default false. */
  readonly disableClone?: boolean
}

/**
 * Runs a model forward and, if an output requires grad, backward from a scalar loss. Returns the output alone with `onlyFwd`, otherwise
 * [output, loss, parameter gradients, parameters, buffers, input gradients].
 */
export function runFwdMaybeBwd(model: Runnable, inputs: readonly unknown[], options: RunOptions = {}): unknown {
  checkCallable('runFwdMaybeBwd', 'model', model)
  checkArray('runFwdMaybeBwd', 'inputs', inputs)
  checkOptions('runFwdMaybeBwd', options, { onlyFwd: true, disableClone: true })
  const args = options.disableClone === true ? inputs : inputs.map(cloneInput)
  if (model instanceof Module) model.zeroGrad()
  const out = callOf(model, args)
  if (options.onlyFwd === true) return out
  const needsBackward = treeLeaves(out).some((leaf) => leaf instanceof Tensor && leaf.requiresGrad)
  let loss: Tensor | null = null
  if (needsBackward) {
    loss = reduceToScalarLoss(out)
    loss.backward()
  }
  return collectResults(model, out, loss, args)
}

function collectResults(model: Runnable, out: unknown, loss: Tensor | null, args: readonly unknown[]): unknown {
  const grads: Record<string, Tensor | null> = {}
  const params: Record<string, Tensor> = {}
  const buffers: Record<string, Tensor> = {}
  if (model instanceof Module) {
    for (const [name, param] of model.namedParameters()) {
      if (!(param instanceof Tensor)) continue
      params[name] = param.detach()
      grads[name] = param.grad
    }
    for (const [name, buffer] of model.namedBuffers()) if (buffer instanceof Tensor) buffers[name] = buffer
  }
  return [out, loss, grads, params, buffers, args.map((a) => (a instanceof Tensor ? a.grad : null))]
}

/** One scalar tensor from any output: the mean of a tensor, the average over arrays and objects. Throws ArgumentError if there is no tensor. */
export function reduceToScalarLoss(out: unknown): Tensor {
  return reduced(out, 0)
}

function reduced(out: unknown, depth: number): Tensor {
  checkDepth(depth)
  if (out instanceof Tensor) return div(sum(out), out.numel)
  const parts: readonly unknown[] = typeof out === 'object' && out !== null ? Object.values(out) : []
  const losses = parts.filter((p) => p !== null && typeof p === 'object').map((part) => reduced(part, depth + 1))
  const [first, ...rest] = losses
  if (first === undefined)
    throw new ArgumentError(
      `reduceToScalarLoss: don't know how to reduce ${out === null ? 'null' : typeof out}; return tensors, or arrays or objects of tensors.`,
    )
  return div(
    rest.reduce((a, b) => add(a, b), first),
    losses.length,
  )
}

/** The model and its inputs in float64; dtype arguments of the graph that name a smaller float become float64 too. The originals are not changed. */
export function castToFp64(gm: GraphModule, inputs: readonly unknown[]): { gm: GraphModule; inputs: unknown[] } {
  checkGraphModule('castToFp64', gm)
  checkArray('castToFp64', 'inputs', inputs)
  const cast = (t: Tensor): Tensor => noGrad(() => (dtypeInfo[t.dtype].floating ? to(t, 'float64') : clone(t)))
  const copy = cloneModule(gm, (t) => {
    const tensor = asTensor(t, 'a tensor of the module')
    const wide = cast(tensor)
    wide.requiresGrad = tensor.requiresGrad
    wide.isParameter = tensor.isParameter
    return wide
  })
  const widen = (arg: Argument): Argument => (arg === 'float32' ? 'float64' : arg)
  for (const node of copy.graph.nodes) {
    if (node.op !== 'call_function' && node.op !== 'call_method') continue
    node.args = node.args.map(widen)
    node.kwargs = Object.fromEntries(Object.entries(node.kwargs).map(([k, v]) => [k, widen(v)]))
  }
  copy.graph.lint()
  copy.recompile()
  return {
    gm: copy,
    inputs: inputs.map((i) => {
      if (!(i instanceof Tensor)) return i
      const wide = cast(i)
      wide.requiresGrad = i.requiresGrad
      return wide
    }),
  }
}

export interface TwoModelsOptions {
  readonly onlyFwd?: boolean
  /** Throw if no float64 reference can be computed. Default false: then the plain comparison decides, with a warning. */
  readonly requireFp64?: boolean
  /** Differences in integers and booleans do not count. Default false. */
  readonly ignoreNonFp?: boolean
}

/** What {@link compareTwoModels} found. */
export interface Comparison {
  readonly same: boolean
  /** Where the numbers differ, and by how much. */
  readonly reasons: readonly string[]
  /** What the compiled model threw, or null. */
  readonly error: unknown
}

/** Compares a compiled model with its graph, judged against a float64 run of the graph. Logs nothing of what it finds. */
export function compareTwoModels(gm: GraphModule, compiled: Runnable, inputs: readonly unknown[], options: TwoModelsOptions = {}): Comparison {
  const onlyFwd = options.onlyFwd ?? false
  const ref = runFwdMaybeBwd(gm, inputs, { onlyFwd })
  const fp64Ref = config.sameTwoModelsUseFp64 ? fp64Reference(gm, inputs, onlyFwd, options.requireFp64 ?? false) : null
  let res: unknown
  try {
    res = runFwdMaybeBwd(compiled, inputs, { onlyFwd })
  } catch (error) {
    return { same: true, reasons: [], error }
  }
  const reasons: string[] = []
  const ignoreNonFp = options.ignoreNonFp ?? config.reproIgnoreNonFp
  const logError = (reason: string): void => void reasons.push(reason)
  return { same: same(ref, res, fp64Ref, { tol: config.reproTolerance, equalNan: true, ignoreNonFp, logError }), reasons, error: null }
}

/**
 * Whether the compiled model computes what the graph computes, judged against a float64 run of the graph.
 * A run-time error of the compiled model is a different bug: it is logged, and the models count as the same.
 */
export function sameTwoModels(gm: GraphModule, compiled: Runnable, inputs: readonly unknown[], options: TwoModelsOptions = {}): boolean {
  checkGraphModule('sameTwoModels', gm)
  checkCallable('sameTwoModels', 'compiled', compiled)
  checkArray('sameTwoModels', 'inputs', inputs)
  checkOptions('sameTwoModels', options, { onlyFwd: true, requireFp64: true, ignoreNonFp: true })
  const { same: isSame, reasons, error } = compareTwoModels(gm, compiled, inputs, options)
  for (const reason of reasons) log.error(reason)
  if (error !== null)
    log.warning(
      `While minifying the program in accuracy minification mode, ran into a runtime exception which is likely an unrelated issue. Skipping this graph.\n${String(error)}`,
    )
  return isSame
}

function fp64Reference(gm: GraphModule, inputs: readonly unknown[], onlyFwd: boolean, required: boolean): unknown {
  try {
    const wide = castToFp64(gm, inputs)
    return runFwdMaybeBwd(wide.gm, wide.inputs, { onlyFwd })
  } catch (error) {
    if (required) throw new ArgumentError('Could not generate fp64 outputs, workaround with config.sameTwoModelsUseFp64 = false', { cause: error })
    log.warning('Could not generate fp64 outputs')
    return null
  }
}
