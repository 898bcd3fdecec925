export declare function passFiles(): readonly string[]
export declare function generate(): void
