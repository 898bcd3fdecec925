// tensorfx/optim
import { installOptim } from '../install/optim.ts'
export * from '../optim/index.ts'

installOptim()
