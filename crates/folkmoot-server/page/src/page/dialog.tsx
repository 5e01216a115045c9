import { type ReactNode, useEffect, useId, useRef } from 'react';
import { useLanguage } from '../text/words';
import { Icon } from './icon';

/** A dialog in front of the page; Escape, its cross and a press beside it close it, and the focus goes back. */
export function Dialog({
  title,
  children,
  wide = false,
  onClose,
}: {
  title: string;
  children: ReactNode;
  wide?: boolean;
  onClose(): void;
}) {
  const { words } = useLanguage();
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const shown = dialog.current;
    if (shown && !shown.open) shown.showModal();
    shown?.querySelector<HTMLElement>('[data-first]')?.focus();
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={heading}
      onClose={(event) => event.target === dialog.current && onClose()}
      onPointerDown={(event) => event.target === dialog.current && onClose()}
    >
      <div className="dialog-inside">
        <header className="dialog-head">
          <h2 id={heading} dir="auto">
            {title}
          </h2>
          <button type="button" className="quiet square" aria-label={words.acts.close} onClick={onClose}>
            <Icon shape="cross" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
