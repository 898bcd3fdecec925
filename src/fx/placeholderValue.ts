// PH: stands in concreteArgs for what stays an input.

/** Base of values that stand for inputs; PyTorch's PHBase. */
export class PHBase {
  toString(): string {
    return 'PH'
  }
}

/** A PH whose properties are copied to the meta of the placeholder that it becomes; PyTorch's PHWithMeta. Subclass it to add properties. */
export class PHWithMeta extends PHBase {
  readonly phKey: string | null

  constructor(phKey: string | null = null) {
    super()
    this.phKey = phKey
  }
}

/** "This stays an input", in concreteArgs; PyTorch's torch.fx.PH. */
export const PH: PHBase = new PHBase()
