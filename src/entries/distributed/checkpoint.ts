// tensorfx/distributed/checkpoint
import { installDistributed } from '../../install/distributed.ts'
export * from '../../distributed/checkpoint/index.ts'

installDistributed()
