// What a program computes and where its time goes: FLOPs and summaries of models.
export { FlopCounterMode } from './flopCounterMode.ts'
export type { FlopsByOperator } from './flopCounterMode.ts'
export { Summary, summary } from './summary.ts'
export type { SummaryOptions, SummaryRow, SummaryTotals } from './summary.ts'
