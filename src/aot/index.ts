// Graphs ahead of time: what a function does is recorded on fake tensors, before any data is there. Each room imports those above it in this list.
//
//   meta/      what captured graphs say of their values (`node.meta.val`), and compiled code as a function
//   trace/     ProxyTensorMode: operators become nodes, writes new values, random draws inputs
//   makeFx/    makeFx: a function as a graph, and what its trace relied on
//   run/       graphs run on other terms: without data, in primitive operators, in place
//   joint/     a forward and its gradient in one graph, and how it is split into two
//   function/  aotFunction: a function with its backward, traced, compiled and called
export { aotFunction } from './function/aotFunction.ts'
export { AotModule, aotModule, aotModuleSimplified } from './function/aotModule.ts'
export { giveTape } from './function/callTape.ts'
export type { CallTape } from './function/callTape.ts'
export { decomposeGraph } from './run/decompose.ts'
export { DecompositionInterpreter } from './run/decompositionInterpreter.ts'
export { compileDifferentiable } from './function/compileDifferentiable.ts'
export { compileJoint } from './function/compileJoint.ts'
export { traceBackward } from './function/traceBackward.ts'
export { traceJoint } from './function/traceJoint.ts'
export type { CompileGraph, CompiledCode, KernelSummary } from './meta/compiled.ts'
export type { Differentiable, JointOptions } from './function/compileJoint.ts'
export { FakeTensorProp } from './run/fakeTensorProp.ts'
export { isApart } from './meta/layout.ts'
export { makeFx } from './makeFx/makeFx.ts'
export type { MakeFxOptions } from './makeFx/makeFx.ts'
export { bindSymbols, evalGuards, shapeEnvOf } from './makeFx/symbolicGraphs.ts'
export type { SourceFnStack } from './makeFx/sources.ts'
export { defaultPartition, minCutPartition } from './joint/partition.ts'
export type { JointGraph } from './joint/jointGraph.ts'
export type { Partition } from './joint/partition.ts'
export { disableProxyModesTracing, getIsolatedGraphModule, getProxyMode } from './makeFx/proxyModes.ts'
export { ProxyTensorMode } from './trace/proxyMode.ts'
export type { Decomposition, ProxyTensorModeOptions } from './trace/proxyOptions.ts'
export { reinplace } from './run/reinplace.ts'
export { readableArguments } from './trace/readableArguments.ts'
export { checkGuards } from './makeFx/traceGuards.ts'
export { ShapeReport, checkShapes } from './run/checkShapes.ts'
export type { InputShape, NamedSize, ShapeIssue } from './run/checkShapes.ts'
