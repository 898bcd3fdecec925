// tensorfx/fx/viewer
import { installFx } from '../../install/fx.ts'
export * from '../../fx/viewer/index.ts'

installFx()
