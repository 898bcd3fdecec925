// tensorfx/fx
import { installFx } from '../install/fx.ts'
export * from '../fx/index.ts'

installFx()
