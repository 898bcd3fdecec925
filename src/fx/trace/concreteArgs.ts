// What `concreteArgs` of a trace may hold: values that parameters are fixed to, and placeholders (PH) for those that stay inputs.

/** The base class of values that stand for inputs; PyTorch's PHBase. */
export class PHBase {
  toString(): string {
    return 'PH'
  }
}

/** A PH whose properties are copied to the meta of its placeholder. Subclass it to add properties. PyTorch's PHWithMeta. */
export class PHWithMeta extends PHBase {
  readonly phKey: string | null

  constructor(phKey: string | null = null) {
    super()
    this.phKey = phKey
  }
}

/** In concreteArgs: this stays an input. PyTorch's torch.fx.PH. */
export const PH: PHBase = new PHBase()

/**
 * Values of parameters: an object by name (a pattern is named arg0, arg1, … by its position), or an array with one value per parameter. `PH`, also inside a nested
 * value, stays an input. Any other value is fixed: the program is traced for it, and the graph asserts that it gets it.
 */
export type ConcreteArgs = Readonly<Record<string, unknown>> | readonly unknown[]
