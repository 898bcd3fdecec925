export declare function generate(): void
