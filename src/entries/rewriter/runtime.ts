// tensorfx/rewriter/runtime: what rewritten modules import.
import { installFx } from '../../install/fx.ts'
export { runtime } from '../../rewriter/runtime.ts'
export type { Runtime } from '../../rewriter/runtime.ts'

installFx()
