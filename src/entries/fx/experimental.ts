// tensorfx/fx/experimental
import { installFx } from '../../install/fx.ts'
export * from '../../fx/experimental/index.ts'

installFx()
