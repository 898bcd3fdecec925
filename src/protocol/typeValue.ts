// The types of values in graphs.

/** A type that is an object, not text; it prints as text. `TensorType` of tensorfx/fx/experimental is one. */
export interface TypeValue {
  readonly isTypeValue: true
  /** The TypeScript type of such values, for generated code. */
  readonly typescript: string
  toString(): string
}

/** The type of a node's value: text, in Python's or TypeScript's notation, or an object. */
export type NodeType = string | TypeValue
