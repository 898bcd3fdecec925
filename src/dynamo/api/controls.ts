// What a program says about capture, from inside or outside of a compiled function: what runs eagerly, where a graph ends, what a graph may hold.
import { Function as AutogradFunction, allowTracing, tracingFunctions } from '../../autograd/index.ts'
import { dispatchState, withoutModes } from '../../dispatch/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { checkCallable, checkCount, isFunction, valueText } from '../../protocol/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { Capture } from '../call/capture.ts'
import type { Callable } from '../call/compiledFunction.ts'
import { breakCauses, disabledCall } from '../reports/breaks.ts'

/** Returns a function that runs `fn`, a function or a module, eagerly even inside a compiled function, whose graph it breaks. PyTorch's torch.compiler.disable. */
export function disable<F extends Callable>(fn: F): F {
  checkCount('disable', arguments, 1)
  checkCallable('disable', 'fn', fn)
  const { name } = fn instanceof Module ? fn.constructor : fn
  return function (this: unknown, ...args: never[]): unknown {
    // Capture does not see what the function does, and it may write to any tensor.
    const tensors = treeLeaves(args).filter((leaf) => leaf instanceof Tensor)
    if (dispatchState.mode instanceof Capture) dispatchState.mode.breakForEagerCode(tensors, disabledCall(name))
    return withoutModes(() => Reflect.apply(fn, this, args))
  } as F
}

/** Ends the graph here; does nothing outside of a compiled function. PyTorch's torch._dynamo.graph_break. */
export function graphBreak(): void {
  checkCount('graphBreak', arguments, 0)
  if (dispatchState.mode instanceof Capture) dispatchState.mode.breakGraph([], breakCauses.graphBreak)
}

/** Whether a compiled function is capturing this code. PyTorch's torch.compiler.is_compiling. */
export const isCompiling = (): boolean => {
  const capture = dispatchState.modes.find((mode) => mode instanceof Capture)
  capture?.isSeen()
  return capture !== undefined
}

/**
 * Declares that the backward of custom Functions may be part of compiled graphs: it depends only on its arguments and on what `ctx` saved. Given a subclass of
 * `torch.autograd.Function` it says so of that class, and returns it; given another function it returns one that says so of all Functions that are applied while it runs. Without this
 * the backward of a custom Function runs as JavaScript at every call. Throws ArgumentError for anything else. PyTorch's torch.compiler.allow_in_graph.
 */
export function allowInGraph<F extends Callable | typeof AutogradFunction>(target: F): F {
  checkCount('allowInGraph', arguments, 1)
  const given: unknown = target
  if (!isFunction(given))
    throw new ArgumentError(`allowInGraph: expected a function or a subclass of torch.autograd.Function, got ${valueText(target)}.`)
  if (Reflect.get(given, 'prototype') instanceof AutogradFunction) {
    allowTracing(target)
    return target
  }
  const call = function (this: unknown, ...args: never[]): unknown {
    return tracingFunctions(() => Reflect.apply(given, this, args))
  }
  return call as F
}
