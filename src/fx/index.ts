// Programs as graphs: capture, edit, generate code, rewrite. PyTorch's torch.fx. This room knows modules but no tensors.
export { Graph } from './graph/graph.ts'
export type { Scope } from './graph/graph.ts'
export { mapAggregate, mapArg } from './graph/mapArg.ts'
export { Node } from './graph/node.ts'
export type {
  Argument,
  CallFunctionNode,
  CallMethodNode,
  CallModuleNode,
  GetAttrNode,
  Kwargs,
  Meta,
  NodeGraph,
  Opcode,
  OutputNode,
  OwningModule,
  PlaceholderNode,
  Target,
} from './graph/node.ts'
export type { NodeType, TypeValue } from '../protocol/index.ts'
export type { BodyTransformer, GeneratedCode, GraphCodegen, SourceMap, SpecOptions, TableColumn, TypeStyle, WriteOptions } from './graph/graphText.ts'
export { GraphModule } from './run/graphModule.ts'
export type { HookHandle, NodeHook, ReplaceHook } from './run/graphModule.ts'
export { LazyGraphModule, makeGraphModule, useLazyGraphModule } from './run/lazyGraphModule.ts'
export { CodeGen } from './text/codegen.ts'
export type { HeadTypes } from './text/typeText.ts'
export { tuple, Slice } from './graph/pythonValues.ts'
export { originOf } from './graph/origin.ts'
export { hasSideEffect } from './graph/purity.ts'
export { GraphError, TraceError } from './graph/errors.ts'
export { getattr, operator } from './graph/operator.ts'
export { layoutReaders, sizeFunctions } from './values/sizeFunctions.ts'
export type { SizeFunctions } from './values/sizeFunctions.ts'
export { Interpreter } from './run/interpreter.ts'
export type { InterpreterOptions, RunOptions } from './run/interpreter.ts'
export { Transformer } from './trace/transformer.ts'
export { isFxTracing, Tracer } from './trace/tracer.ts'
export type { BodySource, RecordedBodies } from './trace/bodies.ts'
export type { ModuleScope, Traceable, TracerOptions } from './trace/tracer.ts'
export type { UnusedConditions } from './values/unusedConditions.ts'
export { FX_CREATE_ARG, TracerBase } from './trace/tracerBase.ts'
export type { CreatesArg } from './trace/tracerBase.ts'
export { GraphAppendingTracer, makeProxy, Proxy } from './trace/graphAppendingTracer.ts'
export type { ProxyConstructor } from './trace/graphAppendingTracer.ts'
export { isProxy, nodeOf, tracerOf } from './values/proxy.ts'
export type { Proxied, ProxyTracer } from './values/proxy.ts'
export type { ConcreteArgs } from './trace/concreteArgs.ts'
export { PH, PHBase, PHWithMeta } from './trace/concreteArgs.ts'
export type { RootArgs } from './trace/rootArgs.ts'
export { PyTreeCodeGen } from './trace/pytreeCodegen.ts'
export type { PyTreeInfo } from './trace/pytreeCodegen.ts'
export { symbolicTrace } from './trace/symbolicTrace.ts'
export type { SymbolicTraceOptions, Traced } from './trace/symbolicTrace.ts'
export { wrap } from './values/wrap.ts'
export type { WrapOptions } from './values/wrap.ts'
export { len, math } from './values/builtins.ts'
export { proxyable } from './values/instances.ts'
export { AssertionFailed, _assert, _assertIsNone, bool } from './values/assertions.ts'
export { capturedConstants } from './run/constants.ts'
export type { CapturedConstant } from './run/constants.ts'
export {
  NodeSource,
  formatStack,
  getCurrentMeta,
  getGraphProvenanceJson,
  hasPreservedNodeMeta,
  preserveNodeMeta,
  setCurrentMeta,
  setStackTrace,
} from './graph/traceback.ts'
export type { NodeSourceAction, NodeSourceJson } from './graph/traceback.ts'
export { SubgraphMatcher } from './rewrite/matcher.ts'
export type { InternalMatch, MatcherOptions } from './rewrite/matcher.ts'
export { replacePattern, replacePatternWithFilters } from './rewrite/replacePattern.ts'
export type { Match, MatchFilter, Pattern, ReplacedPatterns, ReplaceOptions } from './rewrite/replacePattern.ts'
export { getSignatureForTorchOp, normalizeFunction } from './graph/operatorSchemas.ts'
export type { NormalizeOptions, NormalizedCall } from './graph/operatorSchemas.ts'
export type { TargetFunction } from '../protocol/index.ts'
