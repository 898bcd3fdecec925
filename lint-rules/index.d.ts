// Types of the plugin, as far as configurations need them.

/** A rule as ESLint and oxlint take it. */
export interface Rule {
  readonly meta: {
    readonly type: 'problem'
    readonly docs: { readonly description: string }
    readonly messages: Readonly<Record<string, string>>
    readonly schema: readonly object[]
  }
  create(context: object): Readonly<Record<string, (node: object) => void>>
}

declare const plugin: {
  readonly meta: { readonly name: string; readonly version: string }
  readonly rules: Readonly<Record<'no-tensor-condition' | 'no-tensor-equality' | 'no-tensor-operator' | 'no-tensor-typeof' | 'no-tensor-key', Rule>>
  /** Flat configurations of ESLint. */
  readonly configs: Readonly<Record<'recommended', object>>
}
export default plugin
