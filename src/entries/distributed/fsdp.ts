// tensorfx/distributed/fsdp
import { installDistributed } from '../../install/distributed.ts'
export * from '../../distributed/fsdp/index.ts'

installDistributed()
