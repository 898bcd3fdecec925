/** An operator as its source declares it. */
export interface DeclaredOperator {
  readonly file: string
  /** The exported constant. */
  readonly constant: string
  /** The function type that it is declared with; null if its schema says all. */
  readonly type: string | null
  readonly schema: string
  /** Whether numbers may stand for its tensors but the first, or but `self`. */
  readonly pointwise: boolean
  readonly numberFirst: boolean
  /** The schema's name in camelCase. */
  readonly name: string
  readonly namespace: string
  readonly method: boolean
  /** Its in-place form: a method only, or a function as well. */
  readonly inPlace: 'method' | 'function' | null
  /** Whether the result is a list or tuple of tensors. */
  readonly returnsList: boolean
  /** The text of its doc comment. */
  readonly doc: string
}
/** The operators declared in a folder, by default src/ops. */
export declare function findOperators(ops?: string): readonly DeclaredOperator[]
/** Writes src/ops/generated and the lint rules' list of methods below a folder, by default this repository. */
export declare function generate(folder?: string): void
