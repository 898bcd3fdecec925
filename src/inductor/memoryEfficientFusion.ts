// memoryEfficientFusion: aotFunction or aotModule with inductor and the partition that saves the fewest bytes.
import { aotFunction, aotModule, minCutPartition } from '../aot/index.ts'
import type { AotModule, JointOptions } from '../aot/index.ts'
import { Module } from '../module/index.ts'
import { checkCallable } from '../protocol/index.ts'
import { compileFx } from './pipeline.ts'

/**
 * Compiles a function or a module, forward and backward, with as little saved for the backward as possible: what is cheap is computed again there. Each option may be replaced. PyTorch's
 * functorch.compile.memory_efficient_fusion.
 *
 *     const f = memoryEfficientFusion((x: Tensor) => x.sin().cos().sum())
 *
 * @throws ArgumentError for an option that does not exist.
 */
export function memoryEfficientFusion<M extends Module>(module: M, options?: Partial<JointOptions>): AotModule<M>
export function memoryEfficientFusion<A extends readonly unknown[], R>(fn: (...args: A) => R, options?: Partial<JointOptions>): (...args: A) => R
export function memoryEfficientFusion(
  fn: Module | ((...args: readonly unknown[]) => unknown),
  options: Partial<JointOptions> = {},
): Module | ((...args: readonly unknown[]) => unknown) {
  checkCallable('memoryEfficientFusion', 'fn', fn)
  const all: JointOptions = { fwCompiler: compileFx, partition: minCutPartition, ...options }
  return fn instanceof Module ? aotModule(fn, all) : aotFunction(fn, all)
}
