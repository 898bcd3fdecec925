// tensorfx/distributed
import { installDistributed } from '../install/distributed.ts'
export * from '../distributed/index.ts'

installDistributed()
