// tensorfx/fx/passes
import { installFx } from '../../install/fx.ts'
export * from '../../fx/passes/index.ts'
export { insertDeferredRuntimeAsserts } from '../../aot/makeFx/runtimeAsserts.ts'

installFx()
