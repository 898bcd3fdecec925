export interface Coverage {
  readonly fixed: Readonly<Record<string, number>>
  readonly tests: readonly { readonly id: string; readonly file: string; readonly ms: number; readonly hits: Readonly<Record<string, number>> }[]
}
export interface Plan {
  readonly id: string
  readonly hitLimit: number
  readonly ms: number
  /** Ids of tests by file. */
  readonly specs: Readonly<Record<string, readonly string[]>>
}
export function planTests(mutant: { readonly id: string }, coverage: Coverage, file: string, budgetSeconds: number): Plan
export function planShared(mutant: { readonly id: string }, coverage: Coverage, file: string): Pick<Plan, 'id' | 'specs'>
