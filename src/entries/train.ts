// tensorfx/train
import { installCompile } from '../install/compile.ts'
import { installOptim } from '../install/optim.ts'
export * from '../train/index.ts'

installOptim()
installCompile()
