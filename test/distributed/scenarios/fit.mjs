// fit on several ranks.
import { trainAll } from './fitTraining.mjs'

export const ddp = () => trainAll('ddp')
export const fsdp = () => trainAll('fsdp')
