// tensorfx/optim
import { installOptim } from '../install/optim.ts'
export * from '../optim/index.ts'
// Here alone, so that programs without it need not load it.
export * as swaUtils from '../optim/swaUtils.ts'

installOptim()
