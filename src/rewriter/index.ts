// Rewriting of sources, so that tracers see what JavaScript hides from them. PyTorch's torch.fx.experimental.rewriter.
export { RewritingTracer } from './rewritingTracer.ts'
export type { RewritingTracerOptions } from './rewritingTracer.ts'
export { rewriteFunction } from './rewriteFunction.ts'
export type { AnyFunction } from './rewriteFunction.ts'
export { rewriteSource } from './rewriteSource.ts'
export type { RewriteOptions, Rewritten } from './rewriteSource.ts'
export { rewriterPlugin } from './plugin.ts'
export type { RewriterPlugin, RewriterPluginOptions } from './plugin.ts'
