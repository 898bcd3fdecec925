// tensorfx/rewriter: sources are rewritten so that tracers see conditions. It needs a parser (acorn) and magic-string, so no other entry imports it.
import { installFx } from '../install/fx.ts'
export * from '../rewriter/index.ts'

installFx()
