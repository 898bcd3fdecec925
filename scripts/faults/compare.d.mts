import type { DrawnRight } from './alarms.mjs'
import type { FaultApi } from './api.mjs'
import type { DrawnFault } from './plan.mjs'

export function comparedWrongly(api: FaultApi, drawn: DrawnFault): Promise<string | null | undefined>
export function blamedWrongly(api: FaultApi, drawn: DrawnRight): Promise<string | null>
