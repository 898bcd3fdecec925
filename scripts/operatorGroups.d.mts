/** The group that other names of operators form. */
export declare const ALIASES: string
/** The groups of the operators below a folder like src/ops. */
export declare function groupsIn(ops: string): {
  readonly groups: readonly string[]
  groupOf(file: string, constant: string): string
  unusedPaths(operators: readonly { readonly file: string; readonly constant: string }[]): readonly string[]
}
