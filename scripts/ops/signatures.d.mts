/** How a function is called: its parameters and its result, as TypeScript. */
export interface Signature {
  readonly parameters: readonly string[]
  readonly result: string
}
/** What a signature depends on. */
export interface SignatureSource {
  readonly constant: string
  readonly schema: string
  readonly pointwise: boolean
  readonly numberFirst: boolean
}
export declare function camelCase(name: string): string
export declare function signatureOf(source: SignatureSource): { readonly calls: readonly Signature[]; readonly interfaces: readonly string[] }
export declare function signaturesIn(type: string, text: string): readonly Signature[]
export declare function asMethod(signature: Signature): Signature
