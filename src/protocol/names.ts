// PyTorch's spelling of a name and JavaScript's: `log_softmax` and `logSoftmax`.

/** `log_softmax` -> `logSoftmax`. Underscores at the ends stay: `add_`, `_assert`. */
export const camelCase = (name: string): string => name.replace(/([a-z0-9])_+([a-z0-9])/g, (_, a: string, b: string) => a + b.toUpperCase())

/** `runningMean` -> `running_mean`, `weightIhL0Reverse` -> `weight_ih_l0_reverse`: PyTorch's name of a parameter. */
export const attributeName = (name: string): string => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase()

/** `MaxPool2d` -> `max_pool2d`, `ReLU` -> `re_lu`. PyTorch's _snake_case. */
export function snakeCase(name: string): string {
  return /[A-Z]/.test(name) ? name.replace(/([a-z])(?=[A-Z])/g, '$1_').toLowerCase() : name
}
