// fit on several ranks.
import { stepsTaken, trainAll } from './fitTraining.mjs'

export const ddp = () => trainAll('ddp')
export const fsdp = () => trainAll('fsdp')
export const halves = async () => ({ ddp: await stepsTaken('ddp'), fsdp: await stepsTaken('fsdp') })
